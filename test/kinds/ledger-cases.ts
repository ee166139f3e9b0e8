import { made } from "./case.ts";
import type { Case } from "./case.ts";

const hypervisor = made("Hypervisor", {
  type: "proxmox",
  endpoints: ["https://pve1:8006"],
  credentials: { secretRef: { namespace: "berth-system", name: "rack" } },
});

const claim = made("Claim", {
  hypervisor: { name: "rack", systemId: "s1" },
  externalId: "100",
  state: "Reserved",
  origin: "Created",
  identity: "6c1f8a52-3d0e-4b7a-9f7e-2b1c5d8e9a04",
  installation: "0b8e1f6d-97f4-4c52-8d0a-41c6a7e5f210",
  owner: { namespace: "prod", name: "db-1", uid: "u1" },
});

const file = {
  "spec.target": "File",
  "spec.externalId": "pve1/local/Image/debian.qcow2",
  "spec.file": { storage: "local", name: "debian.qcow2", content: "Image" },
};

const orphan = made("Orphan", { hypervisor: "rack", kind: "Machine", externalId: "100" });

const otherIdentity = "11111111-3d0e-4b7a-9f7e-2b1c5d8e9a04";

export const ledgerCases: readonly Case[] = [
  { name: "a plain hypervisor", base: hypervisor, edits: {} },
  {
    name: "systemId is written once",
    base: hypervisor,
    before: {},
    edits: { "spec.systemId": "s1" },
  },
  {
    name: "systemId changes",
    base: hypervisor,
    before: { "spec.systemId": "s1" },
    edits: { "spec.systemId": "s2" },
    refused: ["spec.systemId", "systemId is written once"],
  },
  {
    name: "systemId vanishes",
    base: hypervisor,
    before: { "spec.systemId": "s1" },
    edits: {},
    refused: ["spec.systemId", "systemId is written once"],
  },
  {
    name: "the type changes",
    base: hypervisor,
    before: {},
    edits: { "spec.type": "vsphere" },
    refused: ["spec.type", "the type of a Hypervisor cannot change"],
  },
  {
    name: "an endpoint without encryption",
    base: hypervisor,
    edits: { "spec.endpoints": ["http://pve1:8006"] },
    refused: ["spec.endpoints", "endpoints of proxmox and vsphere are https:// URLs"],
  },
  {
    name: "a password in the endpoint",
    base: hypervisor,
    edits: { "spec.endpoints": ["https://root:secret@pve1:8006"] },
    refused: ["spec.endpoints[0]", "an endpoint cannot carry a user or password"],
  },
  {
    name: "no credentials",
    base: hypervisor,
    edits: { "spec.credentials": undefined },
    refused: ["spec.credentials", "credentials are missing"],
  },
  {
    name: "a local libvirt without credentials",
    base: hypervisor,
    edits: {
      "spec.type": "libvirt",
      "spec.endpoints": ["qemu:///system"],
      "spec.credentials": undefined,
    },
  },
  {
    name: "an id range that is upside down",
    base: hypervisor,
    edits: { "spec.idRange": { first: 200, last: 100 } },
    refused: ["spec.idRange.first", "first cannot be above last"],
  },

  {
    name: "a libvirt that is reached like Proxmox",
    base: hypervisor,
    edits: { "spec.type": "libvirt", "spec.endpoints": ["host:16514"] },
    refused: ["spec.endpoints[0]", "should match"],
  },
  {
    name: "a libvirt whose URI is none",
    base: hypervisor,
    edits: { "spec.type": "libvirt", "spec.endpoints": ["qemu+tls+x://host/system"] },
    refused: ["spec.endpoints", "endpoints of libvirt are its own URIs"],
  },
  {
    name: "an id range where there are no numbers",
    base: hypervisor,
    edits: { "spec.type": "vsphere", "spec.idRange": { first: 100, last: 200 } },
    refused: ["spec.idRange", "idRange is for hypervisors with numbered machines"],
  },
  {
    name: "a root account where none is needed",
    base: hypervisor,
    edits: {
      "spec.type": "vsphere",
      "spec.unlockCredentials": { secretRef: { namespace: "a", name: "b" } },
    },
    refused: ["spec.unlockCredentials", "unlockCredentials are for proxmox only"],
  },
  {
    name: "two ways to know the server",
    base: hypervisor,
    edits: {
      "spec.tls": {
        ca: "-----BEGIN CERTIFICATE-----",
        fingerprints: [Array.from({ length: 32 }, () => "AA").join(":")],
      },
    },
    refused: ["spec.tls", "give the ca or the fingerprints"],
  },
  { name: "a Claim is bound", base: claim, before: {}, edits: { "spec.state": "Bound" } },
  {
    name: "a bound Claim goes back to Reserved",
    base: claim,
    before: { "spec.state": "Bound" },
    edits: { "spec.state": "Reserved" },
    refused: ["spec.state", "a Claim goes from Reserved to Bound"],
  },
  {
    name: "a released Claim is taken over by another object",
    base: claim,
    before: { "spec.state": "Released", "spec.everExisted": true },
    edits: { "spec.owner.name": "db-2", "spec.identity": otherIdentity },
  },
  {
    name: "a released Claim is bound without reserving it",
    base: claim,
    before: { "spec.state": "Released" },
    edits: { "spec.state": "Bound" },
    refused: ["spec.state", "a Claim goes from Reserved to Bound"],
  },
  {
    name: "a bound Claim is given away",
    base: claim,
    before: { "spec.state": "Bound" },
    edits: { "spec.state": "Bound", "spec.owner.namespace": "dev" },
    refused: ["spec.owner", "cannot be given to another object"],
  },
  {
    name: "a bound Claim is rebound to the object of the same name",
    base: claim,
    before: { "spec.state": "Bound" },
    edits: { "spec.state": "Bound", "spec.owner.uid": "u2" },
  },
  {
    name: "the identity changes under a bound Claim",
    base: claim,
    before: { "spec.state": "Bound" },
    edits: { "spec.state": "Bound", "spec.identity": otherIdentity },
    refused: ["spec.identity", "the identity of a machine cannot change"],
  },
  {
    name: "the id changes",
    base: claim,
    before: { "spec.state": "Released" },
    edits: { "spec.state": "Released", "spec.externalId": "101" },
    refused: ["spec.externalId", "externalId cannot change"],
  },
  {
    name: "a machine that stood never stood",
    base: claim,
    before: { "spec.state": "Bound", "spec.everExisted": true },
    edits: { "spec.state": "Bound", "spec.everExisted": false },
    refused: ["spec.everExisted", "everExisted cannot become false again"],
  },
  {
    name: "a quarantine without end",
    base: claim,
    edits: { "spec.state": "Quarantined" },
    refused: ["spec.quarantineUntil", "needs quarantineUntil"],
  },

  {
    name: "a bound Claim goes to another installation",
    base: claim,
    before: { "spec.state": "Bound" },
    edits: { "spec.state": "Bound", "spec.installation": otherIdentity },
    refused: ["spec.installation", "cannot be given to another installation"],
  },
  {
    name: "the bound Claim of a file passes to another image",
    base: claim,
    before: { ...file, "spec.state": "Bound" },
    edits: { ...file, "spec.state": "Bound", "spec.owner.name": "other" },
  },
  {
    name: "the Claim of a file that says nothing of it",
    base: claim,
    edits: { "spec.target": "File" },
    refused: ["spec.file", "a Claim of a File needs file"],
  },
  {
    name: "the Claim of a VM becomes that of a file",
    base: claim,
    before: {},
    edits: { "spec.target": "File", "spec.file": file["spec.file"] },
    refused: ["spec.target", "a Claim stays one of a File"],
  },
  {
    name: "the Claim of a VM with the id of a file",
    base: claim,
    edits: { "spec.externalId": "pve1/local/Image/debian.qcow2" },
    refused: ["spec.externalId", "only the id of a File has a '/'"],
  },
  {
    name: "the system changes",
    base: claim,
    before: {},
    edits: { "spec.hypervisor.systemId": "s2" },
    refused: ["spec.hypervisor.systemId", "systemId cannot change"],
  },
  {
    name: "a decision that nobody confirmed",
    base: orphan,
    edits: { "spec.decision": "Destroy", "spec.confirm": "101" },
    refused: ["spec.confirm", "a decision needs confirm"],
  },
  {
    name: "a decision",
    base: orphan,
    edits: { "spec.decision": "Destroy", "spec.confirm": "100" },
  },
  {
    name: "adopting into nothing",
    base: orphan,
    edits: { "spec.decision": "Adopt", "spec.confirm": "100" },
    refused: ["spec.adoptAs", "decision: Adopt needs adoptAs"],
  },

  {
    name: "adopting a volume",
    base: orphan,
    edits: {
      "spec.kind": "Volume",
      "spec.decision": "Adopt",
      "spec.confirm": "100",
      "spec.adoptAs": { namespace: "a", name: "b" },
    },
    refused: ["spec.decision", "only a Machine can be adopted"],
  },
  {
    name: "an orphan that becomes another",
    base: orphan,
    before: {},
    edits: { "spec.externalId": "101" },
    refused: ["spec.externalId", "an Orphan is about one thing"],
  },
];
