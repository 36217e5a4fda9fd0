/** Questions to a client as values: asked at once, or by handlers that keep their rounds themselves. */

import { PeerMisbehavedError } from "../errors/errors.js";
import { deprecated } from "../json/deprecation.js";
import type { Arguments, Schema } from "../json/schema.js";
import type { ElicitResult, Root } from "../types.js";
import { asked, type Elicited, elicited, type Form } from "./forms.js";
import { type Whole, whole } from "./results.js";
import { CreateMessageResult, type SampleMessage, type SampleOptions, sampling } from "./sampling.js";

type Json = Readonly<Record<string, unknown>>;

/**
 * A question to the client and its user, for {@link Context.askAll} and {@link InputRequired}. `T` is what comes of it.
 * The functions here take what the methods of {@link Context} take, without the options of a request.
 */
export class Question<out T = unknown> {
  /** `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  readonly method: string;
  /** The parameters, as the schema has them. */
  readonly params: Json | undefined;
  /** @internal */
  readonly read: (result: Json) => T | Promise<T>;
  /**
   * A schema library judges what the answer holds.
   *
   * @internal
   */
  readonly judged: boolean;

  private constructor(
    method: string,
    params: Json | undefined,
    read: (result: Json) => T | Promise<T>,
    judged = false,
  ) {
    this.method = method;
    this.params = params;
    this.read = read;
    this.judged = judged;
  }

  /**
   * A form for the user: {@link Context.elicit}.
   *
   * @throws {MisuseError} for a schema that no form can be made of
   */
  static elicit<const S extends Schema>(
    message: string,
    schema: S | Form<S>,
  ): Question<Elicited<Arguments<S>> & Whole> {
    const form = asked(schema as Schema | Form);
    const params = { mode: "form", message, requestedSchema: form.schema };
    return new Question("elicitation/create", params, (result) => elicited<Arguments<S>>(form, result), form.judged);
  }

  /** A page for the user to visit: {@link Context.elicitUrl}. */
  static elicitUrl(
    message: string,
    url: string | URL,
    elicitationId: string,
  ): Question<Pick<ElicitResult, "action"> & Whole> {
    const params = { mode: "url", message, url: String(url), elicitationId };
    return new Question("elicitation/create", params, (result) =>
      whole({ action: result["action"] as ElicitResult["action"] }, result),
    );
  }

  /**
   * A message of the client's model: {@link Context.sample}.
   *
   * @deprecated MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider
   */
  static sample(messages: SampleMessage | readonly SampleMessage[], how: SampleOptions): Question<CreateMessageResult> {
    deprecated("sample", "sampling");
    const params = sampling(messages, how);
    return new Question("sampling/createMessage", params, (result) => new CreateMessageResult(result));
  }

  /**
   * The folders and files that the server may look at: {@link Context.listRoots}.
   *
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  static listRoots(): Question<Root[] & Whole> {
    deprecated("listRoots", "roots");
    return new Question("roots/list", undefined, (result) => {
      const { roots } = result as { readonly roots?: unknown };
      if (!Array.isArray(roots)) throw new PeerMisbehavedError("roots/list: the result has no list of roots");
      return whole(roots as Root[], result);
    });
  }
}

/** The outcomes of several questions, in their order. */
export type Asked<Questions extends readonly Question[]> = {
  -readonly [N in keyof Questions]: Questions[N] extends Question<infer T> ? T : never;
};
