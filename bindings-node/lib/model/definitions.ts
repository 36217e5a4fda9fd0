/** Kinds of the lists that a server offers. */

/** A kind of what a server offers. */
export type Kind = "tool" | "resource" | "resource_template" | "prompt";
