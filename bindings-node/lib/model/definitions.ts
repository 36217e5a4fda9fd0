/** Words of definitions of tools, resources and prompts. */

/** A kind of what a server offers. */
export type Kind = "tool" | "resource" | "resource_template" | "prompt";

/** True if a tool may be called as a task: it must not (the default), it may, it must. */
export type TaskSupport = "forbidden" | "optional" | "required";
