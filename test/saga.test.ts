import { describe, test } from "node:test";
import {
  effectsOf,
  liveThrough,
  type Saga,
  type Trouble,
  undisturbed,
} from "../src/controllers/testing/saga.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const grown = { ...root, size: "12Gi" };
const data = { name: "data", size: "20Gi", storage: "local-zfs" };

const sagas: readonly Saga[] = [
  {
    name: "from an image, in a pool, with a disc for its first boot",
    spec: {
      disks: [root, data],
      placement: { pool: "prod" },
      updatePolicy: "Reboot",
      cloudInit: { userData: { inline: "#cloud-config\nruncmd: [id]\n" } },
      shutdown: { graceSeconds: 5, force: true },
    },
    changes: [
      { cpu: { cores: 4 }, disks: [grown, data] },
      { disks: [grown, { ...data, state: "Absent", onDelete: "Delete" }] },
    ],
  },
  {
    name: "cloned from a template, highly available, with an id that a person chose",
    spec: {
      externalId: "500",
      source: { clone: { externalId: "900", mode: "Linked" } },
      disks: [root],
      highAvailability: { enabled: true },
      shutdown: { graceSeconds: 5, force: true },
    },
    changes: [{ highAvailability: { enabled: false } }, { powerState: "Stopped" }],
  },
];

const troubles: readonly Trouble[] = [
  "crash before",
  "crash after",
  "request lost",
  "reply lost",
  "refused",
  "repeat",
  "deleted before",
  "deleted after",
  "crash before, deleted",
  "crash after, deleted",
  "step fails",
  "worker killed",
];

/** A plain run strikes at every third effect, with each trouble at others; CI strikes at all. */
const stride = process.env["BERTH_REQUIRE_REAL"] === "1" ? 1 : 3;

for (const saga of sagas) {
  describe(`a machine ${saga.name}`, async () => {
    const calm = await undisturbed(saga);
    for (const [i, trouble] of troubles.entries()) {
      const count = effectsOf(trouble, calm);
      test(`keeps the laws with "${trouble}" at any of ${count} effects`, async () => {
        for (let at = 1 + (i % stride); at <= count; at += stride) {
          await liveThrough(saga, { trouble, at });
        }
      });
    }
  });
}
