import { assert } from "../../kernel/assert.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { apiVersionOf, type KubeObject, type ObjectMeta } from "../../kernel/object.ts";
import { badRequest, invalid, unsupportedMediaType, type ApiError } from "../../kernel/status.ts";
import { decodeProtobuf, isProtobuf } from "../protobuf/index.ts";
import { mediaTypeOf } from "./accept.ts";
import { parseJson, parseYaml, UnreadableBody, type ParsedBody } from "./body.ts";
import { decodeMetadata, MetadataTypeError } from "./metadata-decode.ts";

/** What a body must hold. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Kubernetes' own kinds may come as protobuf, and without saying what they are. */
  readonly isNative: boolean;
}

export interface DecodedObject {
  readonly object: KubeObject;
  /** What strict decoding objects to so far: members given twice. */
  readonly complaints: readonly string[];
}

interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Reads the object that a create or update carries, or refuses in kube-apiserver's words. */
export function decodeObject(received: Received, expected: ExpectedKind): DecodedObject {
  const { value, duplicates } = parseBody(received, expected);
  return { object: toKubeObject(value, expected, received.body), complaints: duplicates };
}

/**
 * Reads a value as the object that is expected: type, then metadata. `source` is the text it came
 * from, of which a refusal shows the beginning.
 */
export function toKubeObject(value: Json, expected: ExpectedKind, source: Uint8Array): KubeObject {
  // To Go's decoder null is an object in which nothing is set.
  if (value === null) return toKubeObject({}, expected, source);
  if (!isJsonObject(value)) {
    throw unrecognized(expected, `the body must be an object, not ${typeName(value)}`, source);
  }
  const { apiVersion, kind } = assertType(value, expected, source);
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...rest } = value;
  return { apiVersion, kind, metadata: readMetadata(metadata, expected), ...rest };
}

/** `VirtualMachine in version "v1alpha1" cannot be handled as a VirtualMachine: …` */
export function cannotBeHandled(expected: ExpectedKind, why: string, kind?: string): ApiError {
  const given = `${kind ?? expected.kind} in version ${JSON.stringify(expected.version)}`;
  return badRequest(`${given} cannot be handled as a ${expected.kind}: ${why}`);
}

export function unknownFormat(accepted: readonly string[]): ApiError {
  const why = "the body of the request was in an unknown format";
  return unsupportedMediaType(`${why} - accepted media types include: ${accepted.join(", ")}`);
}

/** Reads a body of a known media type into JSON, without asking what it means. */
export function parseBody(received: Received, expected: ExpectedKind): ParsedBody {
  const contentType = received.headers["content-type"];
  try {
    switch (mediaTypeOf(contentType)) {
      case "":
      case "application/json":
        return parseJson(received.body);
      case "application/yaml":
        return parseYaml(received.body);
    }
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error;
    const why = `couldn't get version/kind; json parse error: ${error.message}`;
    throw unrecognized(expected, why, received.body);
  }
  if (expected.isNative && isProtobuf(contentType ?? "")) {
    const decoded: unknown = decodeProtobuf(received.body);
    assert(isJsonObject(decoded), "a decoded protobuf body is an object");
    return { value: decoded, duplicates: [] };
  }
  const accepted = ["application/json", "application/yaml"];
  throw unknownFormat(
    expected.isNative ? [...accepted, "application/vnd.kubernetes.protobuf"] : accepted,
  );
}

function assertType(
  value: JsonObject,
  expected: ExpectedKind,
  source: Uint8Array,
): { apiVersion: string; kind: string } {
  const wanted = apiVersionOf(expected.group, expected.version);
  const kind = typeText(value, "kind", expected) || (expected.isNative ? expected.kind : "");
  const apiVersion = typeText(value, "apiVersion", expected) || (expected.isNative ? wanted : "");
  if (kind === "") {
    throw unrecognized(expected, `Object 'Kind' is missing in '${beginning(source)}'`, source);
  }
  if (apiVersion !== wanted) {
    const given = `the API version in the data (${apiVersion})`;
    throw badRequest(`${given} does not match the expected API version (${wanted})`);
  }
  if (kind !== expected.kind) throw wrongKind(value, kind, expected);
  return { apiVersion, kind };
}

/** Kubernetes refuses a wrong kind of its own while decoding, any other when validating. */
function wrongKind(value: JsonObject, kind: string, expected: ExpectedKind): ApiError {
  if (expected.isNative) {
    const [group = ""] = (expected.group || "core").split(".");
    const to = `${group}.${expected.kind}`;
    const why = `converting (${expected.version}.${kind}) to (${to}): unknown conversion`;
    return cannotBeHandled(expected, why, kind);
  }
  const { name = "" } = readMetadata(value["metadata"], expected);
  return invalid({ group: expected.group, kind, name }, [
    {
      type: "FieldValueInvalid",
      field: "kind",
      value: JSON.stringify(kind),
      detail: `must be ${expected.kind}`,
    },
  ]);
}

function typeText(value: JsonObject, field: string, expected: ExpectedKind): string {
  const found = Object.hasOwn(value, field) ? value[field] : undefined;
  if (found === undefined || found === null) return "";
  if (typeof found === "string") return found;
  throw cannotBeHandled(expected, `.${field} must be a string`);
}

function readMetadata(value: Json | undefined, expected: ExpectedKind): ObjectMeta {
  try {
    return decodeMetadata(value, expected.isNative ? "ObjectMeta.metadata" : "ObjectMeta");
  } catch (error) {
    if (!(error instanceof MetadataTypeError)) throw error;
    throw cannotBeHandled(expected, error.message);
  }
}

function unrecognized(expected: ExpectedKind, why: string, source: Uint8Array): ApiError {
  // Thirty bytes of a Secret may be the secret: answers get into logs that are not ours.
  const isSecret = expected.group === "" && expected.kind === "Secret";
  const shown = isSecret ? `${source.byteLength} bytes` : summary(source);
  return badRequest(
    `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${shown})`,
  );
}

const summaryBytes = 30;
const openBrace = 0x7b;

/** The first bytes: as they are where they look like JSON, in hexadecimal where they do not. */
function summary(source: Uint8Array): string {
  if (source.byteLength === 0) return "<empty>";
  if (source[0] === openBrace) return beginning(source);
  const hex = Buffer.from(source.subarray(0, summaryBytes)).toString("hex");
  return source.byteLength > summaryBytes ? `${hex} ...` : hex;
}

function beginning(source: Uint8Array): string {
  const text = Buffer.from(source.subarray(0, summaryBytes)).toString("utf8");
  return source.byteLength > summaryBytes ? `${text} ...` : text;
}

/** "an array", "a number": what stands where an object should. */
function typeName(value: Json): string {
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}
