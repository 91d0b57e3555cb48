// What the programs share: parts that print, each of which goes on where the one before failed.
//
//     part("arrays", async () => { ... });
//     await run();   // "# arrays", what it prints, and "! SQLSTATE message" where it raised
import { inspect } from "node:util";

const parts = [];

// Adds a part to the program.
export const part = (name, body) => parts.push([name, body]);

// Where the server is.
export const address = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};
export const url = `postgres://${address.user}@${address.host}:${address.port}/${address.database}`;

// Prints values in one line.
export const say = (...values) =>
  console.log(...values.map((value) => (typeof value === "string" ? value : inspect(value, { depth: 9, breakLength: Infinity, compact: true, sorted: true }))));

// An error as its SQLSTATE and its first line, whichever library wraps it.
export const told = (error) => {
  let inner = error;
  while (!/^[0-9A-Z]{5}$/.test(inner.code ?? "") && (inner.cause ?? inner.original ?? inner.driverError)) {
    inner = inner.cause ?? inner.original ?? inner.driverError;
  }
  return `${error.name} ${inner.code ?? error.code} ${String(inner.message ?? inner).split("\n")[0]}`;
};

// What a promise ends with: its value, or nothing where it fails with an error, which is printed.
export const attempt = async (promise) => {
  try {
    return await promise;
  } catch (error) {
    say("!", told(error));
    return undefined;
  }
};

// Runs all parts.
export const run = async () => {
  for (const [name, body] of parts) {
    say(`# ${name}`);
    await attempt(body());
  }
};
