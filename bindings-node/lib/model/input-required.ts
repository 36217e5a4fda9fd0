/** The end of a handler's run at questions to the client. */

import { MisuseError, TricornError } from "../errors/errors.js";
import type { Question } from "./questions.js";

/**
 * The run of a handler ends here, because the client has to answer first (specification 2026-07-28, "Multi Round-Trip
 * Requests"): the handler runs again, from its beginning, with the answers. It is no failure, and nobody is told of one.
 *
 * {@link Context.elicit} and its like throw it where revision 2026-07-28 has no answer yet. Let it pass; the client is
 * asked whatever a handler makes of it.
 *
 * The handler of a tool, a prompt or a resource that keeps its rounds itself throws or returns one of its own, in every
 * revision, and finds the answers in {@link Context.inputResponses}:
 *
 * ```ts
 * app.tool("greet", (_, ctx) => {
 *   const { who } = ctx.inputResponses as { who?: ElicitResult };
 *   if (who?.action !== "accept") throw new InputRequired({ who: Question.elicit("Your name?", form) });
 *   return `Hello, ${who.content?.name}!`;
 * });
 * ```
 */
export class InputRequired extends TricornError {
  /** Questions for the client, by the handler's own keys. */
  readonly questions: Readonly<Record<string, Question>>;
  /** State that the handler keeps for its next run; undefined: nothing. */
  readonly state: unknown;

  /**
   * @param questions by keys of the handler's own. Default: none, so that the client comes back with the state alone
   * @param options.state {@link Context.requestState} of the next run: anything that is JSON. In revision 2026-07-28
   *   the client carries it, sealed. Default: nothing. One of both has to be there
   * @throws {MisuseError} for what is no {@link Question}
   */
  constructor(questions: Readonly<Record<string, Question>> = {}, options: { readonly state?: unknown } = {}) {
    super("input_required", "the client has to answer first: the handler runs again");
    const wrong = Object.entries(questions).find(([, question]) => typeof question?.method !== "string");
    if (wrong) throw new MisuseError(`InputRequired: "${wrong[0]}": expected a Question`);
    this.questions = questions;
    this.state = options.state;
  }
}
