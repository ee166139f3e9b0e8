import { siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { Weather } from "./wire.ts";

/** What the network does, for some seconds and to one of the clusters. */
export function onTheWire(makers: TroubleMakers): Trouble[] {
  return [...lost(makers), ...odd(makers)];
}

/** Sets something for a while, and back. */
function forAWhile(
  { world, dice, ...makers }: TroubleMakers,
  what: string,
  set: (weather: Weather, isOn: boolean) => void,
): () => void {
  return () => {
    const { name } = siteOf({ world, dice, ...makers });
    const weather = world.weather.get(name);
    if (weather === undefined) throw new Error(`there is no ${name}`);
    world.trace.say("weather", () => `${name}: ${what}`);
    set(weather, true);
    world.clock.after(dice.between(500, 30_000), () => set(weather, false));
  };
}

/**
 * For a while; or, as often, not before something is sent that changes something, to either of the
 * clusters, and then surely: most of what passes in some seconds are questions.
 */
function untilWrite(
  makers: TroubleMakers,
  { what, fate }: { readonly what: string; readonly fate: NonNullable<Weather["nextWrite"]> },
  set: (weather: Weather, isOn: boolean) => void,
): () => void {
  const meanwhile = forAWhile(makers, what, set);
  return () => {
    if (makers.dice.chance(0.5)) return meanwhile();
    const { trace, weather: weathers } = makers.world;
    trace.say("weather", () => `${what}, at the next change of each cluster`);
    for (const weather of weathers.values()) weather.nextWrite = fate;
  };
}

/** What does not arrive, or arrives late. */
function lost(makers: TroubleMakers): Trouble[] {
  const { dice } = makers;
  return [
    {
      name: "lose replies",
      weight: 3,
      strike: untilWrite(
        makers,
        { what: "replies are lost", fate: "loseReply" },
        (weather, isOn) => {
          weather.loseReply = isOn ? dice.pick([0.1, 0.3, 0.8]) : 0;
        },
      ),
    },
    {
      name: "lose requests",
      weight: 2,
      strike: forAWhile(makers, "requests are lost", (weather, isOn) => {
        weather.loseRequest = isOn ? dice.pick([0.1, 0.3]) : 0;
      }),
    },
    {
      name: "arrive late",
      weight: 2,
      strike: forAWhile(makers, "requests arrive late", (weather, isOn) => {
        weather.late = isOn ? dice.pick([0.2, 0.6]) : 0;
      }),
    },
    {
      name: "delay",
      weight: 1,
      strike: forAWhile(makers, "everything is slow", (weather, isOn) => {
        weather.delayMs = isOn ? dice.pick([200, 2_000, 12_000]) : 0;
      }),
    },
    {
      name: "arrive twice",
      weight: 1,
      strike: untilWrite(
        makers,
        { what: "requests arrive twice", fate: "double" },
        (weather, isOn) => {
          weather.double = isOn ? dice.pick([0.2, 0.6]) : 0;
        },
      ),
    },
    {
      name: "cut off",
      weight: 2,
      strike: forAWhile(makers, "cannot be reached", (weather, isOn) => {
        weather.isCut = isOn;
      }),
    },
  ];
}

/** What is answered, and not by what was asked or not whole. */
function odd(makers: TroubleMakers): Trouble[] {
  const { dice } = makers;
  return [
    {
      name: "show another certificate",
      weight: 1,
      strike: forAWhile(makers, "its certificate is not trusted", (weather, isOn) => {
        weather.isUntrusted = isOn;
      }),
    },
    {
      name: "time out",
      weight: 1,
      strike: forAWhile(makers, "the gateway times out", (weather, isOn) => {
        weather.gatewayTimeout = isOn ? 0.3 : 0;
      }),
    },
    {
      name: "refuse",
      weight: 1,
      strike: forAWhile(makers, "a proxy answers", (weather, isOn) => {
        weather.refuse = isOn ? dice.pick([0.1, 0.5]) : 0;
      }),
    },
    {
      name: "garble replies",
      weight: 1,
      strike: forAWhile(makers, "replies break off", (weather, isOn) => {
        weather.garble = isOn ? dice.pick([0.1, 0.3]) : 0;
      }),
    },
    {
      name: "forget tasks",
      weight: 1,
      strike: untilWrite(
        makers,
        { what: "records of tasks are lost", fate: "forgetTask" },
        (weather, isOn) => {
          weather.forgetTask = isOn ? dice.pick([0.3, 1]) : 0;
        },
      ),
    },
    {
      name: "hide a node",
      weight: 1,
      strike: forAWhile(makers, "lists miss a node's machines", (weather, isOn) => {
        weather.hiddenNode = isOn ? dice.pick(["pve1", "pve2"]) : undefined;
      }),
    },
  ];
}
