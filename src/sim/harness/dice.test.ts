import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Dice, NamedDice } from "./dice.ts";

function rolls(dice: Dice): number[] {
  return Array.from({ length: 5 }, () => dice.between(0, 1_000_000));
}

describe("dice", () => {
  it("of a name are not changed by rolls under other names", () => {
    const [one, other] = [new NamedDice(7, "wire"), new NamedDice(7, "wire")];
    other.of("late").between(1, 6);
    assert.deepEqual(rolls(one.of("garble")), rolls(other.of("garble")));
    assert.notDeepEqual(rolls(one.of("late")), rolls(one.of("garble")));
  });

  it("that are bound go on with their purpose, and nobody else notices", () => {
    const dice = Dice.of(7, "step 1");
    const late: number[][] = [];
    const act = dice.bind(() => late.push(rolls(dice)));
    dice.turnTo(7, "step 2");
    dice.between(0, 1_000_000);
    act();
    const rest = rolls(dice);
    assert.deepEqual(late[0], rolls(Dice.of(7, "step 1")));
    const plain = Dice.of(7, "step 2");
    plain.between(0, 1_000_000);
    assert.deepEqual(rest, rolls(plain));
  });

  it("that rest refuse to decide, unless who asks was bound before", () => {
    const dice = Dice.of(7, "step 1");
    const act = dice.bind(() => dice.between(0, 9));
    dice.rest();
    assert.throws(() => dice.between(0, 9), /no step of the history has named/);
    assert.doesNotThrow(() => act());
  });

  it("do not roll for what never happens", () => {
    const dice = Dice.of(7, "a");
    assert.equal(dice.chance(0), false);
    assert.deepEqual(rolls(dice), rolls(Dice.of(7, "a")));
  });
});
