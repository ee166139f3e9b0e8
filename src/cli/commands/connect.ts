import type { Command } from "../command.ts";
import { serverOptions } from "../objects/connect.ts";
import { systemMachine } from "../objects/machine.ts";

export const connect: Command = {
  name: "connect",
  summary: "connect a hypervisor: certificate, token, rights, and the objects for it",
  description:
    "Shows the server's certificate and asks whether it is the right one, asks for an API token, " +
    "examines the connection as berth doctor does, and then writes a Secret in berth-system and a " +
    "Hypervisor. Where rights are missing it prints the exact commands that grant them. Several " +
    "addresses of one cluster take over from each other.\n\n" +
    "The token's secret is asked for without echo, or read from --token-file FILE (- is standard " +
    "input) or BERTH_TOKEN_SECRET; it is never an argument. The file may hold the secret alone, " +
    "user@realm!name=secret, or what pveum user token add --output-format json prints.\n\n" +
    "Nothing is written while there is a problem that only a person can mend, unless --force. Run " +
    "again with the same name it renews token, addresses and certificate of the same system; another " +
    "system of that name is refused.",
  usage:
    "connect proxmox URL... [--name NAME] [--token-id ID] [--token-file FILE] [--fingerprint FP | --ca FILE | --yes]",
  options: {
    name: {
      type: "string",
      value: "NAME",
      description: "the Hypervisor's name (if absent, the host's)",
    },
    "token-id": { type: "string", value: "ID", description: "the token: user@realm!name" },
    "token-file": {
      type: "string",
      value: "FILE",
      description: "read the token's secret from this file; - is standard input",
    },
    fingerprint: {
      type: "strings",
      value: "FP",
      description: "the SHA-256 fingerprint of the certificate; once for each URL",
    },
    ca: {
      type: "string",
      value: "FILE",
      description: "the authority that signed the certificates",
    },
    "server-name": {
      type: "string",
      value: "NAME",
      description: "the name in the certificate, where it is not the host's",
    },
    yes: { type: "boolean", short: "y", description: "take the certificate as it is, unasked" },
    force: { type: "boolean", description: "write the objects although there are problems" },
    ...serverOptions,
  },
  arguments: ["proxmox", "URL", "URL..."],
  examples: [
    "berth connect proxmox https://pve1.example:8006",
    "berth connect proxmox pve1.example pve2.example --name prod --ca pve-root-ca.pem",
    "berth connect proxmox 192.0.2.10 --token-id 'berth@pve!prod' --token-file - < secret",
  ],
  // Only here: whoever asks for help need not wait for all drivers to load.
  run: async (call) => {
    const { runConnect, systemTools } = await import("../connect/run.ts");
    return await runConnect(call, systemMachine, systemTools(systemMachine));
  },
};
