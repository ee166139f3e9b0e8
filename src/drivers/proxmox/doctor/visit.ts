import type { Failure, Finding } from "../../../hypervisor/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { isSupported, type Release } from "../release.ts";
import { readSystem } from "../system.ts";
import { PveApi } from "../wire/api.ts";
import type { TlsTrust } from "../wire/https.ts";
import type { PveReply, Send } from "../wire/wire.ts";
import { judgeCertificate } from "./certificate.ts";
import { newTokenCommands, olderReleaseNotes } from "./grants.ts";
import type { Probe } from "./probe.ts";

/**
 * What came of asking at one endpoint.
 *
 * - `silent`: it cannot be reached.
 * - `unproven`: its certificate is not what it should be, so nothing was sent.
 * - `failed`: it answered, and not as it should.
 * - `met`: it said who it is.
 */
export type Visit = { readonly url: string; readonly skewMs?: number } & (
  | { readonly is: "silent"; readonly why: string }
  | { readonly is: "unproven"; readonly certificate: Finding }
  | { readonly is: "failed"; readonly certificate: Finding; readonly failure: Failure }
  | {
      readonly is: "met";
      readonly certificate: Finding;
      readonly system: { readonly release: Release; readonly systemId: string };
      readonly tookMs: number;
    }
);

interface VisitOptions {
  readonly tls: TlsTrust;
  readonly clock: Clock;
}

export async function visitEndpoint(
  { url, probe, send }: { url: string; probe: () => Promise<Probe>; send: Send },
  { tls, clock }: VisitOptions,
): Promise<Visit> {
  const probed = await probe();
  if (probed.is === "silent") return { url, is: "silent", why: probed.why };
  const certificate = judgeCertificate(url, { probe: probed, tls, nowMs: clock.nowMs() });
  if (certificate.level === "problem") return { url, is: "unproven", certificate };
  const watch = new Stopwatch(send, clock);
  const system = await readSystem(new PveApi(watch.send));
  const { skewMs, firstMs } = watch;
  const common = { url, certificate, ...(skewMs === undefined ? {} : { skewMs }) };
  if (!system.ok) return { ...common, is: "failed", failure: system.failure };
  const { release, view } = system.value;
  const { systemId } = view;
  return { ...common, is: "met", system: { release, systemId }, tookMs: firstMs };
}

/** Measures while others ask: how long the first call takes, and how far the clocks are apart. */
class Stopwatch {
  readonly send: Send;
  firstMs = 0;
  skewMs: number | undefined;

  constructor(send: Send, clock: Clock) {
    this.send = async (request) => {
      const startMs = clock.monotonicMs();
      const reply = await send(request);
      this.firstMs ||= clock.monotonicMs() - startMs;
      this.skewMs ??= skewOf(reply, clock.nowMs());
      return reply;
    };
  }
}

/** The header says when the answer was written, in whole seconds: half of one is its middle. */
function skewOf(reply: PveReply, nowMs: number): number | undefined {
  if (reply.type !== "answered" || reply.date === undefined) return undefined;
  const theirsMs = Date.parse(reply.date) + 500;
  return Number.isNaN(theirsMs) ? undefined : theirsMs - nowMs;
}

export interface Expected {
  readonly tokenId: string;
  readonly systemId?: string;
}

/** What the visits tell about the connection. Pure. */
export function judgeVisits(visits: readonly Visit[], expected: Expected): Finding[] {
  return [
    ...visits.map((visit) => endpointFinding(visit, visits)),
    ...visits.flatMap((visit) => (visit.is === "silent" ? [] : [visit.certificate])),
    ...clockFindings(visits),
    ...credentialFindings(visits, expected),
    ...systemFindings(visits, expected),
  ];
}

function endpointFinding(visit: Visit, all: readonly Visit[]): Finding {
  const { url } = visit;
  const check = "Endpoint";
  if (visit.is === "met") {
    const tookMs = Math.max(1, Math.round(visit.tookMs));
    return { check, level: "ok", message: `${url} answers within ${tookMs} ms` };
  }
  if (visit.is === "silent") {
    const isOnly = all.every((other) => other.is === "silent");
    return {
      check,
      level: isOnly ? "problem" : "warning",
      message: `${url} cannot be reached: ${visit.why}`,
      remedy: isOnly
        ? "Check the address, the port (8006) and the firewall, and that pveproxy runs there."
        : "The other endpoints take over; look after this one.",
    };
  }
  const isRefused = visit.is === "unproven" || visit.failure.connection === "CredentialsRefused";
  if (isRefused) return { check, level: "ok", message: `${url} can be reached` };
  const { message, cause, remedy } = visit.failure;
  const detail = cause === undefined || message.includes(cause) ? "" : ` (${cause})`;
  return {
    check,
    level: "problem",
    message: `${url} answers, but not as it should: ${message}${detail}`,
    remedy: remedy ?? "Check that this is the API of Proxmox VE (port 8006), and try again.",
  };
}

/** Beyond this a file on a shared storage may be taken for a newer one: see recorded-volumes.ts. */
const skewProblemMs = 5 * 60_000;
const skewWarningMs = 30_000;

function clockFindings(visits: readonly Visit[]): Finding[] {
  const known = visits.flatMap(({ url, skewMs }) =>
    skewMs === undefined ? [] : [{ url, skewMs }],
  );
  const off = known.filter(({ skewMs }) => Math.abs(skewMs) >= skewWarningMs);
  if (known.length > 0 && off.length === 0) {
    const worst = Math.max(...known.map(({ skewMs }) => Math.abs(skewMs)));
    const apart = worst < 2_000 ? "agree" : `are ${Math.round(worst / 1000)} s apart`;
    return [{ check: "Clock", level: "ok", message: `the clocks here and there ${apart}` }];
  }
  return off.map(({ url, skewMs }) => {
    const seconds = Math.round(Math.abs(skewMs) / 1000);
    const which = skewMs > 0 ? "ahead of" : "behind";
    return {
      check: "Clock",
      level: Math.abs(skewMs) >= skewProblemMs ? "problem" : "warning",
      message: `the clock of ${url} is ${seconds} s ${which} this machine's`,
      remedy: "Let both get their time from the network (timedatectl, chronyc tracking).",
    };
  });
}

function credentialFindings(visits: readonly Visit[], { tokenId }: Expected): Finding[] {
  const refused = visits.find((visit) => {
    return visit.is === "failed" && visit.failure.connection === "CredentialsRefused";
  });
  if (refused?.is === "failed") {
    const { cause } = refused.failure;
    return [
      {
        check: "Credentials",
        level: "problem",
        message: `the token ${tokenId} is refused: ${cause ?? refused.failure.message}`,
        remedy:
          "Check its id and secret, and that neither it nor its user is disabled or expired. " +
          `For a new one, on a node, as root (${olderReleaseNotes().join("; ")}):`,
        commands: newTokenCommands(tokenId),
      },
    ];
  }
  if (!visits.some(({ is }) => is === "met")) return [];
  return [{ check: "Credentials", level: "ok", message: `the token ${tokenId} is accepted` }];
}

function systemFindings(visits: readonly Visit[], { systemId }: Expected): Finding[] {
  const met = visits.flatMap((visit) => (visit.is === "met" ? [visit] : []));
  const [first] = met;
  if (first === undefined) return [];
  const seen = first.system;
  const stranger = met.find(({ system }) => system.systemId !== seen.systemId);
  const identity =
    stranger === undefined
      ? identityFinding(seen.systemId, systemId)
      : twoClusters(first.url, stranger.url);
  return [...versionFindings(seen.release), identity];
}

function twoClusters(url: string, other: string): Finding {
  return {
    check: "Identity",
    level: "problem",
    message: `${url} and ${other} are of different clusters`,
    remedy: "Give the endpoints of one cluster only, and the other a Hypervisor of its own.",
  };
}

function identityFinding(seen: string, known: string | undefined): Finding {
  if (known === undefined || known === seen) {
    const which = known === undefined ? "the cluster is" : "the same cluster as ever:";
    return { check: "Identity", level: "ok", message: `${which} ${seen}` };
  }
  return {
    check: "Identity",
    level: "problem",
    message: `another system answers: ${seen} instead of ${known}. Nothing is written to it.`,
    remedy: "Put the endpoints back, or make another Hypervisor for the other system.",
  };
}

function versionFindings(release: Release): Finding[] {
  if (isSupported(release)) {
    return [{ check: "Version", level: "ok", message: `Proxmox VE ${release.text}` }];
  }
  return [
    {
      check: "Version",
      level: "problem",
      message: `Proxmox VE ${release.text} is too old: it cannot import disks by its API`,
      remedy: "Upgrade the cluster to 7.2 or later; 8.4 and later can do everything.",
    },
  ];
}
