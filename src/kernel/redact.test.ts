import assert from "node:assert/strict";
import { test } from "node:test";
import { redact } from "./redact.ts";

const secret = "s3cr3t-0f-7h3-h0us3";

const table: Record<string, string> = {
  [`sent Authorization: PVEAPIToken=root@pam!berth=${secret}`]:
    "sent Authorization: PVEAPIToken=root@pam!berth=[redacted]",
  [`authorization: Bearer ${secret}`]: "authorization: Bearer [redacted]",
  [`cannot fetch https://user:${secret}@images.example/a.qcow2`]:
    "cannot fetch https://[redacted]@images.example/a.qcow2",
  [`GET /a?x=1&token=${secret}&y=2`]: "GET /a?x=1&token=[redacted]&y=2",
  [`wrong password=${secret} for root`]: "wrong password=[redacted] for root",
  [`a -----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY----- b`]: "a [redacted] b",
  [`cut off -----BEGIN RSA PRIVATE KEY-----\n${secret}`]: "cut off [redacted]",
};

test("what looks like a secret is taken out, and the rest stays", () => {
  for (const [text, left] of Object.entries(table)) assert.equal(redact(text), left);
});

test("a text without one stays as it is", () => {
  for (const text of [
    "the VM 100 on pve1 is locked (clone)",
    "https://pve1:8006 answers, mail ops@example.com",
    "UPID:pve1:0001:0002:66F:qmcreate:100:root@pam!berth:",
  ]) {
    assert.equal(redact(text), text);
  }
});
