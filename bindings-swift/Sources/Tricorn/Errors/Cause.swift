/// Has what an operation causes begun by the task that started the operation: a task takes over the task-local values of the one
/// that makes it, and there is no other way to them.
final class Cause: Sendable {
    typealias Job = @Sendable () -> Void

    private struct State {
        var jobs: [Job] = []
        var waiting: CheckedContinuation<Void, Never>?
        /// The thing that the task waits for is there.
        var isReady = false
        var isOver = false
    }

    /// Knowledge of the web framework around a mounted server about the request.
    let host: (any Sendable)?
    private let state = Locked(State())

    init(host: (any Sendable)? = nil) { self.host = host }

    /// False when nobody is left to begin it.
    func begin(_ job: @escaping Job) -> Bool {
        let (isTaken, waiting) = state.with { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard !state.isOver else { return (false, nil) }
            state.jobs.append(job)
            defer { state.waiting = nil }
            return (true, state.waiting)
        }
        waiting?.resume()
        return isTaken
    }

    /// Tells `run` that the thing it waits for is there.
    func ready() { set { $0.isReady = true } }

    /// Nothing more comes.
    func end() {
        set {
            $0.isReady = true
            $0.isOver = true
        }
    }

    private func set(_ change: (inout State) -> Void) {
        let waiting = state.with { state in
            change(&state)
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// Begins what there is to begin, until what the task waits for is there.
    func run() async {
        while true {
            let (jobs, isReady) = state.with { state in
                defer { state.jobs = [] }
                return (state.jobs, state.isReady)
            }
            for job in jobs { job() }
            if isReady { return }
            await withCheckedContinuation { continuation in
                let isThere = state.with { state in
                    if state.isReady || !state.jobs.isEmpty { return true }
                    state.waiting = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
        }
    }

    /// Goes on in a task beside this one, until the end. What came before an end that was told meanwhile is begun here.
    func keep() {
        let (isOver, jobs) = state.with { state -> (Bool, [Job]) in
            state.isReady = state.isOver
            guard state.isOver else { return (false, []) }
            defer { state.jobs = [] }
            return (true, state.jobs)
        }
        for job in jobs { job() }
        if !isOver { Task { await run() } }
    }

    /// The end, in the task that waited.
    func finish() {
        let jobs = state.with { state in
            state.isOver = true
            state.isReady = true
            defer { state.jobs = [] }
            return state.jobs
        }
        for job in jobs { job() }
    }
}
