import { WireType, type BinaryReader } from "@bufbuild/protobuf/wire";
import type { KubeObject } from "../../kernel/object.ts";
import { badRequest } from "../../kernel/status.ts";
import { configMap, event, lease, namespace, newerEvent } from "./core-messages.ts";
import { secret, serviceAccount } from "./core-messages.ts";
import { decodeMessage } from "./decode-message.ts";
import { text, type Message } from "./message.ts";
import { deleteOptions } from "./meta-messages.ts";
import { selfSubjectAccessReview, selfSubjectReview } from "./review-messages.ts";
import { selfSubjectRulesReview, tokenRequest } from "./review-messages.ts";
import { forEachField, MalformedProtobuf } from "./scalars.ts";

const mediaType = "application/vnd.kubernetes.protobuf";

/** Bodies begin so, to tell them from all other protobuf: "k8s" and a zero. */
const magic = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

const typeMeta: Message = { 1: text("apiVersion", "always"), 2: text("kind", "always") };

/** The kinds that Kubernetes' own clients send in no other form. */
const messages: Readonly<Record<string, Message>> = {
  "v1/Namespace": namespace,
  "v1/ConfigMap": configMap,
  "v1/Secret": secret,
  "v1/ServiceAccount": serviceAccount,
  "v1/Event": event,
  "events.k8s.io/v1/Event": newerEvent,
  "coordination.k8s.io/v1/Lease": lease,
  "authentication.k8s.io/v1/TokenRequest": tokenRequest,
  "authentication.k8s.io/v1/SelfSubjectReview": selfSubjectReview,
  "authorization.k8s.io/v1/SelfSubjectAccessReview": selfSubjectAccessReview,
  "authorization.k8s.io/v1/SelfSubjectRulesReview": selfSubjectRulesReview,
};

export function isProtobuf(contentType: string): boolean {
  return contentType.split(";", 1)[0]?.trim().toLowerCase() === mediaType;
}

/**
 * Reads a protobuf body into the object that the same client would have sent as JSON. DeleteOptions
 * are read too, under any apiVersion, and have no metadata. What cannot be read is refused with
 * 400; the transport has already bounded the size.
 */
export function decodeProtobuf(body: Uint8Array): KubeObject {
  try {
    const { apiVersion, kind, raw } = decodeEnvelope(body);
    const fields = decodeMessage(raw, messageOf(apiVersion, kind));
    // cast: every table has the metadata, but that of options, which nobody takes for an object.
    return { apiVersion, kind, ...fields } as unknown as KubeObject;
  } catch (error) {
    if (!isMalformed(error)) throw error;
    throw badRequest(`the protobuf body cannot be read: ${error.message}`);
  }
}

/** The reader of the wire throws plain errors and range errors; a TypeError is a bug of ours. */
function isMalformed(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TypeError);
}

function messageOf(apiVersion: string, kind: string): Message {
  // Clients name DeleteOptions by the version of what they delete.
  if (kind === "DeleteOptions") return deleteOptions;
  const key = `${apiVersion}/${kind}`;
  const message = Object.hasOwn(messages, key) ? messages[key] : undefined;
  if (message !== undefined) return message;
  throw badRequest(`no kind "${kind}" is registered for version "${apiVersion}" in protobuf`);
}

/** runtime.Unknown: what is inside, and its bytes. */
interface Envelope {
  apiVersion: string;
  kind: string;
  raw: Uint8Array;
}

function decodeEnvelope(body: Uint8Array): Envelope {
  if (!magic.every((byte, at) => body[at] === byte)) {
    throw new MalformedProtobuf("it does not begin as a Kubernetes object does");
  }
  const envelope: Envelope = { apiVersion: "", kind: "", raw: new Uint8Array() };
  forEachField(body.subarray(magic.length), (fieldNumber, wireType, reader) => {
    if (wireType !== WireType.LengthDelimited) return false;
    return readEnvelopeField(envelope, fieldNumber, reader);
  });
  return envelope;
}

function readEnvelopeField(envelope: Envelope, fieldNumber: number, reader: BinaryReader): boolean {
  switch (fieldNumber) {
    case 1:
      Object.assign(envelope, decodeMessage(reader.bytes(), typeMeta));
      return true;
    case 2:
      envelope.raw = reader.bytes();
      return true;
    case 3:
      if (reader.string() !== "") throw new MalformedProtobuf("its content is encoded");
      return true;
    case 4:
      if (!["", mediaType].includes(reader.string())) {
        throw new MalformedProtobuf("its content is of another media type");
      }
      return true;
    default:
      return false;
  }
}
