/** A mirror in a folder, for Node.js. */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Entry, Kind, Place, Store } from "./client.js";

/** Longer names are not accepted by every file system. */
const MAX_NAME_CHARACTERS = 200;

/** A copy of a registry: a file of JSON for each document, in a folder for each kind, and `place.json`. */
export class FolderStore implements Store {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async place(): Promise<Place | undefined> {
    const text = await contentOf(join(this.#folder, "place.json"));
    return text === undefined ? undefined : (JSON.parse(text) as Place);
  }

  /** Return a document, undefined if there is none. */
  async document(kind: Kind, id: string): Promise<object | undefined> {
    const text = await contentOf(this.#file(kind, id));
    return text === undefined ? undefined : (JSON.parse(text) as object);
  }

  /** Iterate over the documents of a kind. */
  async *documents(kind: Kind): AsyncGenerator<object, void> {
    for (const name of (await readdir(join(this.#folder, kind))).sort()) {
      if (name.endsWith(".json")) yield JSON.parse(await readFile(join(this.#folder, kind, name), "utf8")) as object;
    }
  }

  async replace(entries: Entry[], place: Place): Promise<void> {
    for (const kind of ["company", "person", "framework"]) {
      await rm(join(this.#folder, kind), { recursive: true, force: true });
      await mkdir(join(this.#folder, kind), { recursive: true });
    }
    await this.apply(entries, place);
  }

  async apply(entries: Entry[], place: Place): Promise<void> {
    for (const { kind, id, document } of entries) {
      const file = this.#file(kind, id);
      if (document === null) {
        await rm(file, { force: true });
        continue;
      }
      await mkdir(join(this.#folder, kind), { recursive: true });
      await written(file, document);
    }
    await mkdir(this.#folder, { recursive: true });
    await written(join(this.#folder, "place.json"), place);
  }

  #file(kind: Kind, id: string): string {
    const name = encodeURIComponent(id).replaceAll(".", "%2E").replaceAll("*", "%2A");
    const short = name.length <= MAX_NAME_CHARACTERS ? name : createHash("sha256").update(id).digest("hex");
    return join(this.#folder, kind, `${short}.json`);
  }
}

/** Write a file as a whole or not at all. */
async function written(file: string, content: object): Promise<void> {
  await writeFile(`${file}.part`, JSON.stringify(content));
  await rename(`${file}.part`, file);
}

async function contentOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
