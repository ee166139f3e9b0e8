import type { JsonObject } from "../../src/kernel/json.ts";
import { made } from "./case.ts";
import type { Case } from "./case.ts";
import { vm } from "./virtual-machine-cases.ts";

const vmSet = made("VMSet", { template: { spec: vm["spec"] as JsonObject } }, "default");

const image = made(
  "VMImage",
  {
    source: { http: { url: "https://x.example/a.qcow2", checksum: `sha256:${"0".repeat(64)}` } },
  },
  "default",
);
const network = made("VMNetwork", { bridge: "vmbr0" });
const snapshot = made("VMSnapshot", { vmRef: { name: "web-1" } }, "default");
const restore = made("VMRestore", { snapshotRef: { name: "s" } }, "default");
const migration = made(
  "VMMigration",
  { vmRef: { name: "web-1" }, target: { hypervisorRef: { name: "rack-b" } } },
  "default",
);
const gitSource = made(
  "GitSource",
  { url: "https://git.example/x.git", serviceAccountName: "gitops" },
  "default",
);

export const otherCases: readonly Case[] = [
  { name: "a plain set", base: vmSet, edits: {} },
  {
    name: "an id in a template",
    base: vmSet,
    edits: { "spec.template.spec.externalId": "100" },
    refused: ["spec.template.spec", "externalId and adopt cannot be in a template"],
  },
  {
    name: "a MAC address in a template",
    base: vmSet,
    edits: { "spec.template.spec.networks.0.macAddress": "52:54:00:aa:00:01" },
    refused: ["spec.template.spec", "macAddress cannot be in a template"],
  },
  {
    name: "a template with two sources",
    base: vmSet,
    edits: { "spec.template.spec.source.blank": {} },
    refused: ["spec.template.spec.source", "source must have exactly one"],
  },
  {
    name: "a smaller disk in a template",
    base: vmSet,
    before: {},
    edits: { "spec.template.spec.disks.0.size": "10Gi" },
  },
  {
    name: "a rollout that can never move",
    base: vmSet,
    edits: { "spec.rollout": { maxUnavailable: 0 } },
    refused: ["spec.rollout.maxUnavailable", "cannot both be 0"],
  },
  {
    name: "surge without replacement",
    base: vmSet,
    edits: { "spec.rollout": { maxSurge: 1 } },
    refused: ["spec.rollout", "rollout.maxSurge is only for updateStrategy: Replace"],
  },

  {
    name: "a set whose members' names would be too long",
    base: vmSet,
    edits: { "metadata.name": "a".repeat(59) },
    refused: ["<nil>", "at most 58 characters"],
  },
  {
    name: "a machine's name in a template",
    base: vmSet,
    edits: { "spec.template.spec.machineName": "web" },
    refused: ["spec.template.spec", "machineName cannot be in a template"],
  },
  {
    name: "a static address in a template",
    base: vmSet,
    edits: {
      "spec.template.spec.cloudInit.networks": [
        { name: "lan", ipv4: { method: "Static", address: "10.0.0.5/24" } },
      ],
    },
    refused: ["spec.template.spec", "a static address cannot be in a template"],
  },
  {
    name: "a host name in a template",
    base: vmSet,
    edits: { "spec.template.spec.cloudInit": { hostname: "web" } },
    refused: ["spec.template.spec", "cloudInit.hostname cannot be in a template"],
  },
  {
    name: "a disk that all members take",
    base: vmSet,
    edits: { "spec.template.spec.source": { importedDisk: { diskId: "d1", mode: "Take" } } },
    refused: ["spec.template.spec.source", "only one machine can take a disk"],
  },
  {
    name: "a password in an image's URL",
    base: image,
    edits: { "spec.source.http.url": "https://me:secret@x.example/a.qcow2" },
    refused: ["spec.source.http.url", "url cannot carry a user or password"],
  },
  {
    name: "an image without checksum",
    base: image,
    edits: { "spec.source.http.checksum": undefined },
    refused: ["spec.source.http.checksum", ""],
  },
  {
    name: "prefetching a volume",
    base: image,
    edits: {
      "spec.source": { volume: { hypervisorRef: { name: "rack" }, id: "local:import/a.qcow2" } },
      "spec.prefetch": [{ hypervisor: "rack" }],
    },
    refused: ["spec.prefetch", "prefetch brings a file from source.http"],
  },
  {
    name: "a network that is two things",
    base: network,
    edits: { "spec.portGroup": "VM Network" },
    refused: ["spec", "exactly one of bridge, virtualNetwork and portGroup"],
  },
  {
    name: "a snapshot of another machine",
    base: snapshot,
    before: {},
    edits: { "spec.vmRef.name": "web-2" },
    refused: ["spec.vmRef", "a snapshot is taken once"],
  },
  {
    name: "a snapshot that is kept longer",
    base: snapshot,
    before: {},
    edits: { "spec.keepSeconds": 600 },
  },
  {
    name: "a restore that is used again",
    base: restore,
    before: {},
    edits: { "spec.snapshotRef.name": "s2" },
    refused: ["spec", "a VMRestore is done once"],
  },
  { name: "a plain migration", base: migration, edits: {} },
  {
    name: "a migration with another target",
    base: migration,
    before: {},
    edits: { "spec.target.hypervisorRef.name": "rack-c" },
    refused: ["spec.target", "one machine and one target"],
  },
  {
    name: "a migration that is rolled back",
    base: migration,
    before: {},
    edits: { "spec.goal": "RollBack" },
  },
  {
    name: "a migration that comes back from being rolled back",
    base: migration,
    before: { "spec.goal": "RollBack" },
    edits: { "spec.goal": "Migrate" },
    refused: ["spec.goal", "a migration that was rolled back is over"],
  },
  {
    name: "a cutover without its time",
    base: migration,
    edits: { "spec.cutover": { when: "At" } },
    refused: ["spec.cutover.at", "at goes with when: At"],
  },
  {
    name: "a path that leaves the repository",
    base: gitSource,
    edits: { "spec.path": "machines/../../etc" },
    refused: ["spec.path", "cannot leave it"],
  },
  {
    name: "a repository in the short form of ssh",
    base: gitSource,
    edits: { "spec.url": "git@git.example:x.git" },
    refused: ["spec.url", "the form git@host:path is not understood"],
  },
  {
    name: "a password in a repository's URL",
    base: gitSource,
    edits: { "spec.url": "https://me:secret@git.example/x.git" },
    refused: ["spec.url", "url cannot carry a user or password"],
  },
  {
    name: "a repository over ssh without a key",
    base: gitSource,
    edits: { "spec.url": "ssh://git@git.example/x.git" },
    refused: ["spec.credentials", "a repository over ssh needs credentials"],
  },

  {
    name: "a migration that becomes a plan again",
    base: migration,
    before: {},
    edits: { "spec.goal": "Plan" },
    refused: ["spec.goal", "cannot become a plan again"],
  },
  {
    name: "a VLAN on a VMNetwork of the target",
    base: migration,
    edits: { "spec.target.networks": [{ name: "lan", networkRef: { name: "lab" }, vlan: 3 }] },
    refused: ["spec.target.networks[0].vlan", "vlan goes with bridge"],
  },
  {
    name: "a network that is two things on one hypervisor",
    base: network,
    edits: { "spec.overrides": [{ hypervisor: "lab", bridge: "br0", portGroup: "Lab" }] },
    refused: ["spec.overrides[0]", "give one of bridge, virtualNetwork and portGroup"],
  },
  {
    name: "a branch and a tag",
    base: gitSource,
    edits: { "spec.revision": { branch: "main", tag: "v1" } },
    refused: ["spec.revision", "give exactly one of branch, tag and commit"],
  },
];
