import { stringify } from "yaml";
import type { WireResponse } from "../../kernel/wire.ts";
import type { Output } from "./negotiate.ts";
import type { Pieces } from "./shape.ts";
import { warningHeader } from "./warnings.ts";

/** Up to here YAML is written as people do; beyond, as JSON, which is YAML and much faster. */
const blockYamlBytesMax = 256 * 1024;

export interface Answer {
  readonly status: number;
  readonly output: Output;
  readonly warnings?: readonly string[];
}

/** An answer whose body is JSON in pieces, which are parsed only where its form needs that. */
export function respond(answer: Answer, pieces: Pieces): WireResponse {
  const { status, output, warnings = [] } = answer;
  const isYaml = output.encoding === "yaml";
  const headers = {
    "content-type": isYaml ? "application/yaml" : "application/json",
    ...warningHeader(warnings),
  };
  if (!isYaml && !output.pretty) return { status, headers, body: bytesOf([...pieces, "\n"]) };
  const json = Buffer.concat(bytesOf(pieces)).toString("utf8");
  const value: unknown = JSON.parse(json);
  const isBlock = isYaml && json.length <= blockYamlBytesMax;
  const text = isBlock ? stringify(value) : `${JSON.stringify(value, null, 2)}\n`;
  return { status, headers, body: Buffer.from(text) };
}

/** The pieces as bytes. Stored objects are not copied: joining them is the transport's business. */
function bytesOf(pieces: Pieces): Uint8Array[] {
  return pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
}
