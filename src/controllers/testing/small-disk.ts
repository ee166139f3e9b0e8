import { createHash } from "node:crypto";

/** A disk of 1 GiB that says so as qcow2 does. */
export const content = Buffer.alloc(4096);
content.write("QFI\u00fb", 0, "latin1");
content.writeUInt32BE(3, 4);
content.writeUInt32BE(16, 20);
content.writeBigUInt64BE(2n ** 30n, 24);
export const sha256 = createHash("sha256").update(content).digest("hex");
