import { resolve } from "node:path";
import type { Hypervisor } from "../../api/index.ts";
import {
  dateOf,
  judgeCertificate,
  type Probe,
  type ShownCertificate,
  type TlsTrust,
} from "../../drivers/proxmox/index.ts";
import { type Call, CommandError, usageError } from "../command.ts";
import type { Machine } from "../objects/machine.ts";
import { textOf } from "../objects/text.ts";
import type { Person } from "./person.ts";

export interface TrustTools {
  readonly machine: Machine;
  readonly person: Person;
  /** What the Hypervisor says until now, where it is there already. */
  readonly before: Hypervisor["spec"]["tls"];
  readonly probe: (url: string, tls: TlsTrust) => Promise<Probe>;
}

/**
 * How the endpoints will have to prove themselves: by the fingerprints or the authority that the
 * person gave, by a public authority, or by the certificates that they show now, if the person says
 * that these are right. Undefined means a public authority.
 */
export async function settleTrust(
  call: Call,
  endpoints: readonly string[],
  tools: TrustTools,
): Promise<TlsTrust | undefined> {
  const given = readGiven(call, tools.machine);
  const named = serverNameOf(call, tools);
  const seen = await Promise.all(
    endpoints.map(async (url) => ({ url, probe: await tools.probe(url, { ...given, ...named }) })),
  );
  // What cannot be looked at can only be declared by who knows already what it should show.
  if (given === undefined || !call.flag("force")) demandReached(seen);
  const shown = seen.filter(isShown);
  if (given !== undefined) for (const each of shown) demandProof(each, given, tools.machine);
  const trust = { ...(given ?? (await pinShown(call, shown, tools))), ...named };
  return Object.keys(trust).length === 0 ? undefined : trust;
}

function serverNameOf(call: Call, { before }: TrustTools): Pick<TlsTrust, "serverName"> {
  const serverName = call.string("server-name") ?? before?.serverName;
  return serverName === undefined ? {} : { serverName };
}

interface Seen {
  readonly url: string;
  readonly probe: Probe;
}

type Shown = Seen & { readonly probe: { readonly is: "shown" } };

function isShown(seen: Seen): seen is Shown {
  return seen.probe.is === "shown";
}

function demandReached(seen: readonly Seen[]): void {
  for (const { url, probe } of seen) {
    if (probe.is === "shown") continue;
    const advice =
      "Check the address, the port (8006) and the firewall, and that pveproxy runs there";
    throw new CommandError(`${url} cannot be reached: ${probe.why}. ${advice}.`);
  }
}

/** Pins what is shown, if the person agrees; nothing where public authorities vouch for all. */
async function pinShown(
  call: Call,
  shown: readonly Shown[],
  tools: TrustTools,
): Promise<TlsTrust | undefined> {
  const unproven = shown.filter(({ probe }) => probe.refusal !== undefined);
  if (unproven.length === 0) return undefined;
  const known = new Set(pinsOf(tools).map(readFingerprint));
  for (const each of unproven) {
    const { fingerprint } = each.probe.certificate;
    if (!known.has(fingerprint)) await confirm(call, each, tools);
    known.add(fingerprint);
  }
  const fingerprints = shown.map(({ probe }) => probe.certificate.fingerprint);
  return { fingerprints: [...new Set(fingerprints)] };
}

function pinsOf({ before }: TrustTools): readonly string[] {
  return before?.fingerprints ?? [];
}

function readGiven(call: Call, machine: Machine): TlsTrust | undefined {
  const fingerprints = call.strings("fingerprint").map(readFingerprint);
  const file = call.string("ca");
  if (file === undefined) return fingerprints.length === 0 ? undefined : { fingerprints };
  if (fingerprints.length > 0) throw usageError("give --ca or --fingerprint, not both");
  const path = resolve(call.terminal.directory, file);
  const ca = machine.readFile(path);
  if (ca === undefined) throw new CommandError(`there is no ${path}`);
  if (!/^\s*-----BEGIN CERTIFICATE-----/.test(ca)) {
    throw new CommandError(`${path} holds no certificate: --ca is a PEM file`);
  }
  return { ca: `${ca.trim()}\n` };
}

/** As openssl, pvenode and browsers write it: with or without colons, in either case. */
export function readFingerprint(text: string): string {
  const bare = text.replace(/^(?:sha256:|sha256 fingerprint=)/i, "").replaceAll(":", "");
  if (!/^[0-9a-f]{64}$/i.test(bare)) {
    const advice = "32 bytes in hexadecimal, with or without colons";
    throw usageError(`"${text}" is no SHA-256 fingerprint: it is ${advice}`);
  }
  return (bare.toUpperCase().match(/../g) ?? []).join(":");
}

function demandProof({ url, probe }: Shown, tls: TlsTrust, { clock }: Machine): void {
  const { fingerprint } = probe.certificate;
  const isPinned = tls.fingerprints?.includes(fingerprint) ?? true;
  if (!isPinned) {
    throw new CommandError(
      `${url} shows the certificate ${fingerprint}, which is not the one that you gave: compare ` +
        "it with the node's own (pvenode cert info), and say which one it is.",
    );
  }
  const {
    level,
    message,
    remedy = "",
  } = judgeCertificate(url, {
    probe,
    tls,
    nowMs: clock.nowMs(),
  });
  if (level === "problem") throw new CommandError(`${message}. ${remedy}`);
}

/** Shows a certificate and lets the person say that it is the right one. */
async function confirm(call: Call, { url, probe }: Shown, tools: TrustTools): Promise<void> {
  const { certificate } = probe;
  for (const line of certificateLines(url, certificate, tools)) call.terminal.note(line);
  if (call.flag("yes")) return;
  if (!tools.person.isPresent) {
    throw new CommandError(
      `nobody is at the terminal to say whether the certificate of ${url} is the right one: give ` +
        `--fingerprint ${certificate.fingerprint} if it is, --ca FILE, or --yes to take any`,
    );
  }
  const answer = await tools.person.ask("Is it the node's own? [y/N] ");
  if (/^(?:y|yes)$/i.test(answer)) return;
  throw new CommandError("the certificate was not confirmed: nothing was sent or written");
}

function certificateLines(
  url: string,
  { subject, issuer, names, validFromMs, validToMs, fingerprint }: ShownCertificate,
  tools: TrustTools,
): string[] {
  const nowMs = tools.machine.clock.nowMs();
  const isValid = validFromMs <= nowMs && nowMs < validToMs;
  const validity = `${dateOf(validFromMs)} to ${dateOf(validToMs)}${isValid ? "" : " (NOT NOW)"}`;
  return [
    `${url} shows a certificate that no public authority vouches for:`,
    `  subject      ${textOf(subject)}`,
    `  issuer       ${textOf(issuer)}`,
    ...(names.length === 0 ? [] : [`  names        ${textOf(names.join(", "))}`]),
    `  valid        ${validity}`,
    `  SHA-256      ${fingerprint}`,
    ...pinsOf(tools).map((pin) => `  until now    ${pin}`),
    "On the node, `pvenode cert info` shows the same fingerprint if it is the right one.",
  ];
}
