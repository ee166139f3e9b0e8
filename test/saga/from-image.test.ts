import { strikeAtEveryEffect } from "./strike.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const grown = { ...root, size: "12Gi" };
const data = { name: "data", size: "20Gi", storage: "local-zfs" };

strikeAtEveryEffect({
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
});
