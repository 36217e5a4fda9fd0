/** What a server offers: the kinds of its lists. */

/** A kind of what a server offers. */
export type Kind = "tool" | "resource" | "resource_template" | "prompt";
