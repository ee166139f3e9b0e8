import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { notAcceptable, documentOf, acceptedTypes, takesType } from "../documents/index.ts";
import type { Document, DocumentRequest } from "../documents/index.ts";

/** The form in which Go's clients ask for OpenAPI v2, by its older and its newer name. */
const mediaTypes = [
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
  "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
] as const;

/**
 * OpenAPI v2, without content. kubectl 1.27 and 1.28 fetch it before they explain anything, fail if
 * they cannot read it, and then look everything up in v3. Nothing else that we serve needs v2, so
 * it says only that there is nothing in it.
 */
export const version2Document: Document = documentOf(emptyDocument(), mediaTypes[1]);

/** JSON would have to be the whole description to be of use: it is not served. */
export function assertTakesVersion2(request: DocumentRequest): void {
  const accepted = acceptedTypes(request.headers.accept);
  const taken = accepted.some((type) => mediaTypes.some((known) => takesType(type, known)));
  if (!taken) throw notAcceptable([mediaTypes[1]]);
}

function emptyDocument(): Uint8Array {
  const field = WireType.LengthDelimited;
  const info = new BinaryWriter().tag(1, field).string("Berth").tag(2, field).string("unversioned");
  return new BinaryWriter().tag(1, field).string("2.0").tag(2, field).bytes(info.finish()).finish();
}
