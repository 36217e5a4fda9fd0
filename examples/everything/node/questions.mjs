// Tools that ask their user, in straight lines: what becomes of that in which revision is not theirs to know.
import { Question } from "tricorn";

const form = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });
let reserved = 0;

export function addStraightQuestions(app) {
  app.tool("three_questions", { description: "Ask three things, one after the other" }, async (_, ctx) => {
    const given = [];
    for (const [message, name] of [
      ["First?", "a"],
      ["Second?", "b"],
      ["Third?", "c"],
    ]) {
      const { action, content } = await ctx.elicit(message, form(name, "string"));
      if (action !== "accept") return `${message}: ${action}`;
      given.push(content[name]);
    }
    return given.join(" ");
  });

  app.tool("two_questions", { description: "Ask two things at once" }, async (_, ctx) => {
    const [left, right] = await ctx.askAll([
      Question.elicit("Left?", form("left", "string")),
      Question.elicit("Right?", form("right", "string")),
    ]);
    return `${left.content?.left ?? ""} ${right.content?.right ?? ""}`;
  });

  app.tool("step_once", { description: "Do something once, then ask" }, async (_, ctx) => {
    const number = await ctx.step("reserve", () => ++reserved);
    const { action, content } = await ctx.elicit("Confirm?", form("confirm", "boolean"));
    return `reservation ${number}: ${action === "accept" ? content.confirm : action}`;
  });
}
