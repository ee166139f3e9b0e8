import type { Finding } from "../../../hypervisor/index.ts";
import type { TlsTrust } from "../wire/https.ts";
import type { Probe, ShownCertificate } from "./probe.ts";

const dayMs = 24 * 60 * 60_000;

/** pveproxy renews its own certificate two weeks before its end; what is later was forgotten. */
const soonMs = 14 * dayMs;

/** What an endpoint's certificate is worth, by what the connection trusts. Pure. */
export function judgeCertificate(
  url: string,
  { probe, tls, nowMs }: { probe: Probe & { is: "shown" }; tls: TlsTrust; nowMs: number },
): Finding {
  const { certificate } = probe;
  if (tls.fingerprints !== undefined) {
    const isPinned = tls.fingerprints.some((pin) => isSame(pin, certificate.fingerprint));
    return isPinned ? pinned(url, certificate, nowMs) : changed(url, certificate);
  }
  const { refusal } = probe;
  if (refusal !== undefined) return refused(url, certificate, { refusal, tls });
  const by = tls.ca === undefined ? "by a public authority" : "by the authority in tls.ca";
  return lasting(url, certificate, { nowMs, proven: by });
}

/** The same bytes, whatever the case of their letters. */
function isSame(left: string, right: string): boolean {
  return left.toUpperCase() === right.toUpperCase();
}

function pinned(url: string, certificate: ShownCertificate, nowMs: number): Finding {
  if (certificate.validToMs > nowMs) return lasting(url, certificate, { nowMs, proven: "by pin" });
  return {
    check: "Certificate",
    level: "warning",
    message:
      `${url} shows the pinned certificate, which expired on ${dateOf(certificate.validToMs)}. ` +
      "Berth goes on, because it is pinned; browsers and other tools do not.",
    remedy: renewal,
  };
}

const renewal =
  "Renew it on the node, as root (pvecm updatecerts --force && systemctl restart pveproxy), and " +
  "run berth connect again to pin the new one.";

function changed(url: string, certificate: ShownCertificate): Finding {
  return {
    check: "Certificate",
    level: "problem",
    message:
      `${url} shows another certificate than the pinned one: ${certificate.fingerprint} ` +
      `(${certificate.subject}, valid from ${dateOf(certificate.validFromMs)}). ` +
      "Nothing was sent to it.",
    remedy:
      "If you renewed it, compare it with the node's own (pvenode cert info) and run berth " +
      "connect again; if not, somebody stands between you and the node.",
  };
}

function refused(
  url: string,
  certificate: ShownCertificate,
  { refusal, tls }: { refusal: string; tls: TlsTrust },
): Finding {
  const problem = { check: "Certificate", level: "problem" } as const;
  if (refusal === "CERT_HAS_EXPIRED") {
    const message = `the certificate of ${url} expired on ${dateOf(certificate.validToMs)}`;
    return { ...problem, message, remedy: renewal };
  }
  if (refusal === "CERT_NOT_YET_VALID") {
    const from = dateOf(certificate.validFromMs);
    const message = `the certificate of ${url} is valid only from ${from} on`;
    return { ...problem, message, remedy: "Set the clocks: this machine's, and the node's." };
  }
  if (refusal === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const message = `the certificate of ${url} is for other names: ${namesOf(certificate)}`;
    const remedy =
      "Use one of these names in the endpoint, or give it as tls.serverName (berth connect --server-name).";
    return { ...problem, message, remedy };
  }
  const authority = tls.ca === undefined ? "a public authority" : "the authority in tls.ca";
  return {
    ...problem,
    message:
      `the certificate of ${url} is not signed by ${authority}, but by ${certificate.issuer} ` +
      `(${refusal})`,
    remedy:
      "Pin it (berth connect shows its fingerprint), or give the cluster's own authority, " +
      "/etc/pve/pve-root-ca.pem of any node, by berth connect --ca FILE.",
  };
}

function lasting(
  url: string,
  { validToMs }: ShownCertificate,
  { nowMs, proven }: { nowMs: number; proven: string },
): Finding {
  const until = dateOf(validToMs);
  if (validToMs - nowMs > soonMs) {
    const message = `${url} is proven ${proven}, until ${until}`;
    return { check: "Certificate", level: "ok", message };
  }
  const days = Math.max(0, Math.floor((validToMs - nowMs) / dayMs));
  return {
    check: "Certificate",
    level: "warning",
    message: `the certificate of ${url} expires in ${days} days, on ${until}`,
    remedy: renewal,
  };
}

function namesOf({ names, subject }: ShownCertificate): string {
  return names.length === 0 ? subject : names.join(", ");
}

/** "2027-01-31". */
export function dateOf(timeMs: number): string {
  return Number.isNaN(timeMs) ? "an unknown day" : new Date(timeMs).toISOString().slice(0, 10);
}
