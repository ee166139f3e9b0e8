import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyChange, type Change } from "./changes.ts";
import { KeptFields, KeptList, KeptRecord, type Likeness } from "./kept-parts.ts";

interface Item {
  id: number;
  value: number;
}

const likeness: Likeness<Item, string> = {
  copyOf: (item) => JSON.stringify(item),
  isSame: (item, copy) => JSON.stringify(item) === copy,
};

const act = fc.record({
  do: fc.constantFrom("add", "insert", "remove", "shift", "replace", "change", "swap", "look"),
  where: fc.nat(),
});

test("whatever happens to a list, the changes make it again", () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const list: Item[] = [{ id: 0, value: 0 }];
      const copy = plain({ list });
      const kept = new KeptList(likeness, list);
      for (const [index, { do: what, where }] of acts.entries()) {
        if (what === "look") follow(copy, (changes) => kept.collect(list, ["list"], changes));
        else changeList(list, what, { item: { id: index + 1, value: index }, where });
      }
      follow(copy, (changes) => kept.collect(list, ["list"], changes));
      assert.deepEqual(copy, plain({ list }));
    }),
  );
});

test("a list whose first item goes while another comes is not written anew", () => {
  const list = Array.from({ length: 100 }, (_, id) => ({ id, value: 0 }));
  const kept = new KeptList(likeness, list);
  list.shift();
  list.push({ id: 100, value: 0 });
  const changes: Change[] = [];
  kept.collect(list, [], changes);
  assert.equal(changes.length, 2);
});

test("whatever happens to a record, the changes make it again", () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const record: Record<string, Item> = { "5": { id: 0, value: 0 } };
      const copy = plain({ record });
      const kept = new KeptRecord(likeness, record);
      const touched = new Set<string>();
      for (const [index, { do: what, where }] of acts.entries()) {
        const name = String(where % 12);
        const item = record[name];
        const at = ["record"];
        const names = touched.size % 2 === 0 ? touched : undefined;
        touched.add(name);
        if (what === "look")
          follow(copy, (changes) => kept.collect(record, { names, at }, changes));
        else if (what === "remove") Reflect.deleteProperty(record, name);
        else if (what === "change" && item !== undefined) item.value++;
        else record[name] = { id: index + 1, value: index };
      }
      const all = { names: undefined, at: ["record"] };
      follow(copy, (changes) => kept.collect(record, all, changes));
      assert.deepEqual(copy, plain({ record }));
    }),
  );
});

test("small members that change, come and go are told, and others are left alone", () => {
  const object: Record<string, unknown> = { a: 1, b: { c: [1] }, big: [1], same: { x: 1 } };
  const kept = new KeptFields(object, ["big"]);
  Object.assign(object, { a: 2, d: "new", big: [2], e: undefined });
  Reflect.deleteProperty(object, "b");
  const changes: Change[] = [];
  kept.collect(object, ["at"], changes);
  assert.deepEqual(changes, [
    { at: ["at", "a"], set: 2 },
    { at: ["at", "d"], set: "new" },
    { at: ["at", "b"], remove: true },
  ]);
});

function changeList(
  list: Item[],
  what: string,
  { item, where }: { readonly item: Item; readonly where: number },
): void {
  const place = list.length === 0 ? 0 : where % list.length;
  const found = list[place];
  if (what === "add") list.push(item);
  else if (what === "insert") list.splice(place, 0, item);
  else if (what === "shift") list.shift();
  else if (what === "remove") list.splice(place, 1);
  else if (what === "swap") list.unshift(...list.splice(place, 1));
  else if (what === "replace") list[place] = item;
  else if (found !== undefined) found.value++;
}

function follow(copy: object, collect: (changes: Change[]) => void): void {
  const changes: Change[] = [];
  collect(changes);
  for (const change of plain(changes)) applyChange(copy, change);
}

function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
