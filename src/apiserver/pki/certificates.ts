import { createPrivateKey, createPublicKey, webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { assert } from "../../kernel/assert.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { loadX509 } from "./x509.ts";

/** A certificate and its private key, both PEM. The key is for the owner's eyes (0600) only. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface PkiEnvironment {
  readonly clock: Clock;
  readonly random: Random;
}

const dayMs = 24 * 60 * 60 * 1000;
const authorityDays = 3_650;
const serverDays = 365;
/** Clocks of clients are behind by so much at times. */
const backdateMs = 60 * 60 * 1000;

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
type Key = webcrypto.CryptoKey;

/** A certificate authority of our own: elliptic curve P-256, ten years. */
export async function createAuthority(environment: PkiEnvironment): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const serialNumber = serial(environment.random);
  // The name differs between installations: two of the same name confuse a client that has both.
  const name = [{ CN: [`berth-ca-${serialNumber.slice(-8)}`] }];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject: name,
    issuer: name,
    ...validity(environment.clock, authorityDays),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(certificate.toString("pem")), key: await exportKey(keys.privateKey) };
}

/** Names under which a server is reached: DNS names and addresses, as a person types them. */
export type ServerNames = readonly string[];

/** What every server of ours answers to. */
export const localNames: ServerNames = ["localhost", "127.0.0.1", "::1"];

/** A certificate for the API's server: one year, for these names, signed by the authority. */
export async function issueServerCertificate(
  authority: KeyPair,
  names: ServerNames,
  environment: PkiEnvironment,
): Promise<KeyPair> {
  for (const name of names) assert(isServerName(name), `${name} can stand in a certificate`);
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(environment.random),
    subject: [{ CN: ["berth"] }],
    issuer: issuer.subject,
    ...validity(environment.clock, serverDays),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { cert: pem(certificate.toString("pem")), key: await exportKey(keys.privateKey) };
}

/**
 * Why a server's certificate has to be made anew, or undefined if it is good: not of this
 * authority, other names than wanted, or less than a third of its time left.
 */
export function renewalReason(
  server: KeyPair,
  wanted: { readonly authority: KeyPair; readonly names: ServerNames; readonly nowMs: number },
): string | undefined {
  const certificate = new X509Certificate(server.cert);
  const issuer = new X509Certificate(wanted.authority.cert);
  if (!certificate.checkPrivateKey(createPrivateKey(server.key))) return "it is not of its key";
  if (!certificate.verify(createPublicKey(wanted.authority.cert))) return "another CA signed it";
  if (!certificate.checkIssued(issuer)) return "another CA issued it";
  const missing = wanted.names.find((name) => !isNamed(certificate, name));
  if (missing !== undefined) return `it does not name ${missing}`;
  const fromMs = certificate.validFromDate.getTime();
  const untilMs = certificate.validToDate.getTime();
  const leftMs = untilMs - wanted.nowMs;
  return leftMs < (untilMs - fromMs) / 3 ? "less than a third of its time is left" : undefined;
}

function isNamed(certificate: X509Certificate, name: string): boolean {
  if (isIP(name) !== 0) return certificate.checkIP(name) !== undefined;
  const named = certificate.subjectAltName?.split(", ") ?? [];
  return named.includes(`DNS:${name}`);
}

/** Whether a certificate can carry this name: an address or a DNS name, also with "*." in front. */
export function isServerName(name: string): boolean {
  if (isIP(name) !== 0) return true;
  const label = "[a-zA-Z0-9_]([-a-zA-Z0-9_]{0,61}[a-zA-Z0-9_])?";
  return name.length <= 253 && new RegExp(`^(\\*\\.)?${label}(\\.${label})*$`).test(name);
}

/** The SHA-256 fingerprint that people compare: "AB:CD:…". */
export function fingerprintOf(certificatePem: string): string {
  return new X509Certificate(certificatePem).fingerprint256;
}

function validity(clock: Clock, days: number): { notBefore: Date; notAfter: Date } {
  const nowMs = clock.nowMs();
  return { notBefore: new Date(nowMs - backdateMs), notAfter: new Date(nowMs + days * dayMs) };
}

/** 127 random bits: positive as DER counts, and never zero in its first byte. */
function serial(random: Random): string {
  const bytes = Buffer.from(random.bytes(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}

async function exportKey(key: Key): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" })
    .export({ format: "pem", type: "pkcs8" })
    .toString();
}

function importKey(keyPem: string): Promise<Key> {
  const der = createPrivateKey(keyPem).export({ format: "der", type: "pkcs8" });
  return webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}

function pem(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}
