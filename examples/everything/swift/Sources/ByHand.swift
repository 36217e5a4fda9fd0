// The official suite's tools that keep their rounds of questions themselves, under the names that it knows.
import Tricorn

private func form(_ name: String, _ type: JSONValue = "string") -> JSONValue {
    ["type": "object", "properties": [name: ["type": type]], "required": [.string(name)]]
}

private let whoAreYou = Question.elicit("What is your name?", schema: form("name"))
private let capital = Question.sample("What is the capital of France?", maxTokens: 100)

extension JSONObject {
    /// What the user filled in. What is no such answer is none, and asked for again.
    fileprivate func filled(_ key: String, _ member: String) -> JSONValue? {
        guard let answer = self[key], answer["action"] == "accept" else { return nil }
        return answer["content"]?[member]
    }

    /// What the client's model said.
    fileprivate func said(_ key: String) -> String? { self[key]?["content"]?["text"]?.stringValue }

    /// The URIs of the client's roots.
    fileprivate func roots(_ key: String) -> String? {
        guard let roots = self[key]?["roots"]?.arrayValue else { return nil }
        let uris = roots.compactMap { $0["uri"]?.stringValue }
        return uris.count == roots.count ? uris.joined(separator: " ") : nil
    }
}

func addQuestionsByHand(to app: Server) {
    let prefix = "test_input_required_result_"
    app.tool("\(prefix)elicitation", "Ask for a name") { (_: NoArguments, context) in
        guard let name = try context.inputResponses.filled("user_name", "name")?.stringValue else {
            throw InputRequired(["user_name": whoAreYou])
        }
        return "Hello, \(name)!"
    }
    app.tool("\(prefix)sampling", "Ask the client's model") { (_: NoArguments, context) in
        guard let text = try context.inputResponses.said("capital_question") else {
            throw InputRequired(["capital_question": capital])
        }
        return "The model says: \(text)"
    }
    app.tool("\(prefix)list_roots", "Ask for the roots") { (_: NoArguments, context) in
        guard let uris = try context.inputResponses.roots("client_roots") else {
            throw InputRequired(["client_roots": Question.listRoots()])
        }
        return "Roots: \(uris)"
    }
    app.tool("\(prefix)request_state", "Keep a state") { (_: NoArguments, context) in
        guard try context.inputResponses.filled("confirm", "ok") != nil, try context.requestState == "kept" else {
            let question = Question.elicit("Confirm?", schema: form("ok", "boolean"))
            throw InputRequired(["confirm": question], state: "kept")
        }
        return "state-ok"
    }
    app.tool("\(prefix)multiple_inputs", "Ask three things") { (_: NoArguments, context) in
        let answers = try context.inputResponses
        guard let user = answers.filled("user_name", "name")?.stringValue, let greeting = answers.said("greeting"),
            let uris = answers.roots("client_roots")
        else {
            throw InputRequired(
                [
                    "user_name": whoAreYou, "greeting": Question.sample("Greet the user.", maxTokens: 100),
                    "client_roots": Question.listRoots(),
                ], state: "asked")
        }
        return "\(user) \(greeting) \(uris)"
    }
    app.tool("\(prefix)multi_round", "Ask twice") { (_: NoArguments, context) in
        let answers = try context.inputResponses, kept = try context.requestState?["name"]
        guard let user = (kept ?? answers.filled("step1", "name"))?.stringValue else {
            let question = Question.elicit("Step 1: what is your name?", schema: form("name"))
            throw InputRequired(["step1": question], state: [:])
        }
        guard let color = answers.filled("step2", "color")?.stringValue else {
            let question = Question.elicit("Step 2: which color?", schema: form("color"))
            throw InputRequired(["step2": question], state: ["name": .string(user)])
        }
        return "\(user) likes \(color)"
    }
    app.tool("\(prefix)tampered_state", "Seal a state") { (_: NoArguments, context) in
        guard let kept = try context.requestState?.stringValue else {
            let question = Question.elicit("Confirm?", schema: form("ok", "boolean"))
            throw InputRequired(["confirm": question], state: "untouched")
        }
        return "kept \(kept)"
    }
    app.tool("\(prefix)capabilities", "Ask what can be asked") { (_: NoArguments, context) in
        let answers = try context.inputResponses
        let given = [answers.said("capital_question"), answers.filled("user_name", "name")?.stringValue]
        if given.contains(where: { $0 != nil }) { return given.compactMap { $0 }.joined(separator: " ") }
        let declared = context.request?.clientCapabilities
        var questions: [String: any AnyQuestion] = [:]
        if declared?["sampling"] != nil { questions["capital_question"] = capital }
        if declared?["elicitation"] != nil { questions["user_name"] = whoAreYou }
        throw InputRequired(questions)
    }
    app.prompt("\(prefix)prompt", "Ask before it is made") { (_: NoArguments, context) in
        guard let about = try context.inputResponses.filled("user_context", "context")?.stringValue else {
            let question = Question.elicit("In which context?", schema: form("context"))
            throw InputRequired(["user_context": question])
        }
        return "Context: \(about)"
    }
}
