/** Steps of a login, as errors and clients tell them. */

/** One step of a login: asked, answered, decided. No secrets are in it. */
export interface AuthStep {
  /** The subject of the step: `resource metadata`, `authorization server metadata`, `registration`, `token`, … */
  readonly step: string;
  /** The URL that was asked, without what may be secret in it. */
  readonly url?: string | undefined;
  /** The HTTP status, if there was an answer. */
  readonly status?: number | undefined;
  /** The outcome: what was decided. */
  readonly decision: string;
}
