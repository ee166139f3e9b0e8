import { createHash, createHmac } from "node:crypto";
import type { ClaimSpec, VirtualMachine, VMImage } from "../../api/index.ts";

type MadeFrom = NonNullable<ClaimSpec["createdFrom"]>;

/** As many digits as nobody meets twice by chance. */
const digits = 16;

/**
 * What counts only until the machine stood, by field: its source, and what the guest is told at its
 * first boot. Only digests are kept, because user-data may hold what not everybody should read;
 * of a Secret only its name counts. Pure.
 */
export function createdFrom({ spec }: VirtualMachine): MadeFrom {
  const { source, cloudInit = {} } = spec;
  const fields: [string, unknown][] = [
    ["spec.source", source],
    ...Object.entries(cloudInit).map(([key, value]): [string, unknown] => {
      return [`spec.cloudInit.${key}`, value];
    }),
  ];
  return fields
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => ({ field, digest: digestOf(value) }))
    .toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

/** What the VM refers to, as it is now; absent where it was not looked for. */
export interface Origins {
  readonly image?: VMImage | undefined;
  /** What Secrets say, by the field of spec.cloudInit that refers to them. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** The installation's key. Without it nothing is kept of Secrets. */
  readonly key?: string | undefined;
}

/** The digits of a digest of a Secret. */
const secretDigits = 32;

/**
 * What the objects said that the VM was created from: its VMImage, and Secrets. A Secret is kept as
 * an HMAC with the installation's key: a digest alone would let everybody who reads a Claim try
 * passwords until one fits. Pure.
 */
export function originDigests({ image, secrets = {}, key }: Origins): MadeFrom {
  const ofImage = image === undefined ? [] : [{ field: "image", digest: imageDigest(image) }];
  if (key === undefined) return ofImage;
  const ofSecrets = Object.entries(secrets).map(([field, text]) => {
    const hmac = createHmac("sha256", Buffer.from(key, "base64")).update(`${field}\n${text}`);
    return { field: `secret.${field}`, digest: hmac.digest("hex").slice(0, secretDigits) };
  });
  return [...ofImage, ...ofSecrets].toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

/** A file is the same wherever it comes from. */
function imageDigest({ spec: { source, format } }: VMImage): string {
  const { http, volume, template } = source;
  return digestOf({ checksum: http?.checksum, volume, template, format });
}

/** What is known of the origins of a VM: what is not looked for now is as it was. */
export function withOrigins(before: MadeFrom, now: MadeFrom): MadeFrom {
  const fields = new Set(now.map(({ field }) => field));
  const kept = before.filter(({ field }) => isOrigin(field) && !fields.has(field));
  return [...now, ...kept].toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

/** Origins that say something else than when the VM was created. That has no effect on it. */
export function originsChangedSince(before: MadeFrom, now: MadeFrom): string[] {
  const old = new Map(before.map(({ field, digest }) => [field, digest]));
  return now
    .filter(({ field, digest }) => isOrigin(field) && (old.get(field) ?? digest) !== digest)
    .map(({ field }) => field);
}

/** What a status says of them. */
export function originsText(changed: readonly string[] = []): string {
  if (changed.length === 0) return "";
  const names = changed.map((field) => (field === "image" ? "its VMImage" : `the ${field}`));
  return ` Changed since it was created, without effect on it: ${names.join(", ")}.`;
}

function isOrigin(field: string): boolean {
  return !field.startsWith("spec.");
}

/** Fields that say something else than when the machine was made. */
export function fieldsChangedSince(before: MadeFrom, now: MadeFrom): string[] {
  const digests = (of: MadeFrom): Map<string, string> => {
    return new Map(of.map(({ field, digest }) => [field, digest]));
  };
  const [old, said] = [digests(before), digests(now)];
  const fields = new Set([...old.keys(), ...said.keys()]);
  const declared = [...fields].filter((field) => !isOrigin(field));
  return declared.filter((field) => old.get(field) !== said.get(field)).toSorted();
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, inOrder)).digest("hex").slice(0, digits);
}

/** The order in which somebody wrote the members of an object means nothing. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
