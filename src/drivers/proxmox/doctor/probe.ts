import type { X509Certificate } from "node:crypto";
import { connect, type TLSSocket } from "node:tls";
import type { Clock } from "../../../kernel/clock.ts";
import type { TlsTrust } from "../wire/https.ts";

/** A certificate as a server showed it. */
export interface ShownCertificate {
  /** SHA-256, in hexadecimal with colons. */
  readonly fingerprint: string;
  readonly subject: string;
  readonly issuer: string;
  readonly validFromMs: number;
  readonly validToMs: number;
  /** The names and addresses that it is for. */
  readonly names: readonly string[];
}

/**
 * What came of knocking at an endpoint.
 *
 * - `shown`: it has a certificate. `refusal` is OpenSSL's or Node's word for why authorities do not
 *   vouch for it, judged by the CA that was given or else by the public ones.
 * - `silent`: it cannot be reached, or does not speak TLS.
 */
export type Probe =
  | { readonly is: "shown"; readonly certificate: ShownCertificate; readonly refusal?: string }
  | { readonly is: "silent"; readonly why: string };

export interface ProbeOptions {
  readonly tls: Pick<TlsTrust, "ca" | "serverName">;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A handshake and nothing else: not a byte of a request, and no token, is sent. */
export function probeEndpoint(url: string, options: ProbeOptions): Promise<Probe> {
  const { hostname, port } = new URL(url);
  const { ca, serverName } = options.tls;
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replaceAll(/^\[|\]$/g, ""),
      port: port === "" ? defaultPort : Number(port),
      ...(ca === undefined ? {} : { ca }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      // It is judged by the caller, who has to see it first.
      rejectUnauthorized: false,
    });
    const settle = (probe: Probe): void => {
      cancel();
      socket.destroy();
      resolve(probe);
    };
    const cancel = options.clock.after(options.timeoutMs, () => {
      settle({ is: "silent", why: `no answer within ${options.timeoutMs / 1000} s` });
    });
    socket.once("error", (error: Error) => settle({ is: "silent", why: reasonOf(error) }));
    socket.once("secureConnect", () => settle(shownBy(socket)));
  });
}

/** Where Proxmox VE listens unless somebody put a proxy before it. */
export const defaultPort = 8006;

function shownBy(socket: TLSSocket): Probe {
  const peer = socket.getPeerX509Certificate();
  if (peer === undefined) return { is: "silent", why: "it shows no certificate" };
  const certificate = describeCertificate(peer);
  if (socket.authorized) return { is: "shown", certificate };
  // Node's types say Error; it is the code as a text, except where a check of our own had failed.
  const refusal = String(socket.authorizationError);
  return { is: "shown", certificate, refusal };
}

/** The parts of a certificate that people compare. */
function describeCertificate(certificate: X509Certificate): ShownCertificate {
  return {
    fingerprint: certificate.fingerprint256,
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    validFromMs: Date.parse(certificate.validFrom),
    validToMs: Date.parse(certificate.validTo),
    names: (certificate.subjectAltName ?? "")
      .split(", ")
      .map((name) => name.replace(/^(?:DNS|IP Address):/, ""))
      .filter((name) => name !== ""),
  };
}

function oneLine(name: string): string {
  return name.split("\n").join(", ");
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was closed at once",
  EHOSTUNREACH: "there is no way to that host",
  ENETUNREACH: "there is no way to that network",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name cannot be looked up now",
  ETIMEDOUT: "no answer",
  ERR_SSL_WRONG_VERSION_NUMBER: "what answers there does not speak TLS",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "what answers there does not speak TLS",
};

function reasonOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  // EPROTO holds OpenSSL's own words for what was wrong with the handshake.
  if (code === "EPROTO") return "what answers there does not speak TLS";
  return reasons[code] ?? (error.message === "" ? code : error.message);
}
