import type { JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { badRequest, unsupportedMediaType } from "../../kernel/status.ts";
import type { WireRequest } from "../../kernel/wire.ts";
import { decodeProtobuf, isProtobuf } from "../protobuf/index.ts";

/** The kind that a path takes. */
interface Expected {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * Reads the body of a review. kubectl 1.32 and later send them as protobuf and nothing else.
 * What is in it may be nested as deep as the sender liked: look at what is asked for, no deeper.
 */
export function readReview(request: WireRequest, expected: Expected): JsonObject {
  const body = decodeBody(request);
  if (!isJsonObject(body)) throw badRequest(`the body is not a ${expected.kind}`);
  const { apiVersion, kind } = body;
  const isExpected =
    (apiVersion === undefined || apiVersion === expected.apiVersion) &&
    (kind === undefined || kind === expected.kind);
  if (!isExpected) {
    throw badRequest(`the body is not a ${expected.kind} of ${expected.apiVersion}`);
  }
  return body;
}

function decodeBody(request: WireRequest): unknown {
  const type = request.headers["content-type"] ?? "application/json";
  if (isProtobuf(type)) return decodeProtobuf(request.body);
  if (/^application\/json\s*(;|$)/i.test(type)) return parseJson(request.body);
  throw unsupportedMediaType(
    "the body of the request was in an unknown format - accepted media types include: " +
      "application/json, application/vnd.kubernetes.protobuf",
  );
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The parser's own words quote the body: they are not passed on.
    throw badRequest("the body is not valid JSON");
  }
}
