import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect({
  name: "cloned from a template, highly available, with an id that a person chose",
  spec: {
    externalId: "500",
    source: { clone: { externalId: "900", mode: "Linked" } },
    disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
    highAvailability: { enabled: true },
    shutdown: { graceSeconds: 5, force: true },
  },
  changes: [{ highAvailability: { enabled: false } }, { powerState: "Stopped" }],
});
