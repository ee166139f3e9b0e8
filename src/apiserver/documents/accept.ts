import { parseAccept, type AcceptClause } from "../resources/accept.ts";

const anything: AcceptClause = { type: "*/*", quality: 1, parameters: new Map() };

/** The media types that a client takes, most wanted first. Nothing said is everything taken. */
export function acceptedTypes(header: string | undefined): AcceptClause[] {
  return header === undefined || header.trim() === "" ? [anything] : parseAccept(header);
}

/** Whether a client that takes `accepted` takes documents of this type. */
export function takesType(accepted: AcceptClause, type: string): boolean {
  if (accepted.type === "*/*" || accepted.type === type) return true;
  return accepted.type === `${type.slice(0, type.indexOf("/"))}/*`;
}
