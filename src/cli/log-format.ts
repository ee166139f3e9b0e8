import { type Option, usageError } from "./command.ts";

export const logFormatOption: Option = {
  type: "string",
  value: "FORM",
  default: "text",
  description: "text for people, or json: one object per line",
};

/** The value of --log-format. */
export function readLogFormat(text: string | undefined): "text" | "json" {
  if (text === undefined || text === "text") return "text";
  if (text === "json") return "json";
  throw usageError(`--log-format must be text or json, not "${text}"`);
}
