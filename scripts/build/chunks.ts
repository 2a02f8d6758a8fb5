/** One source file as the bundler sees it. */
export interface Module {
  readonly bytes: number
  /** Whether it imports nothing that only Node has. */
  readonly isPortable: boolean
  /** Other packages that it imports, such as `@skein/ai`. */
  readonly packages: readonly string[]
  /** Files it imports when it is loaded. */
  readonly imports: readonly string[]
  /** Files it imports with `import()`, later or never. */
  readonly lazyImports: readonly string[]
}

/**
 * Opening a file costs Node about as long as loading this much more code does (measured: about 0.3 ms), so
 * two chunks become one where their readers save more files than they load needless code.
 */
const FILE_BYTES = 120_000

interface Chunk {
  readonly isPortable: boolean
  /** Entries that load it. */
  readonly entries: ReadonlySet<string>
  readonly modules: readonly string[]
  readonly bytes: number
}

/**
 * Decides which files share a chunk: module → name of its chunk. A module that only one entry loads stays
 * with that entry and is not named. To begin with, modules loaded by the same entries make a chunk; then
 * the pair whose union saves most is joined, again and again, as long as something is saved.
 *
 * Programs that import a further entry of a package import its main entry too. So if `main` loads fewer files
 * then, what it loads counts as loaded by every entry that can run where `main` can: it becomes one chunk
 * instead of several.
 */
export function planChunks(
  entries: readonly string[],
  moduleOf: (id: string) => Module,
  main?: string,
): ReadonlyMap<string, string> {
  const plan = planFor(entries, moduleOf)
  if (main === undefined) return plan
  const joined = planFor(entries, moduleOf, main)
  const loaded = new Set([main])
  for (const id of loaded) for (const imported of moduleOf(id).imports) loaded.add(imported)
  const filesIn = (one: ReadonlyMap<string, string>): number =>
    new Set(['its own', ...[...loaded].map((id) => one.get(id) ?? 'its own')]).size
  return filesIn(joined) < filesIn(plan) ? joined : plan
}

function planFor(
  entries: readonly string[],
  moduleOf: (id: string) => Module,
  main?: string,
): ReadonlyMap<string, string> {
  const modules = new Map<string, Module>()
  const loadedBy = new Map<string, Set<string>>()
  const roots = [...entries]
  for (const entry of roots) {
    const open = [entry]
    for (const id of open) {
      const known = loadedBy.get(id) ?? new Set()
      if (known.has(entry)) continue
      loadedBy.set(id, known.add(entry))
      const module = modules.get(id) ?? moduleOf(id)
      modules.set(id, module)
      open.push(...module.imports)
      roots.push(...module.lazyImports.filter((lazy) => !roots.includes(lazy)))
    }
  }
  const nodeEntries = new Set(
    [...loadedBy].flatMap(([id, by]) => (modules.get(id)!.isPortable ? [] : [...by])),
  )
  const comesWithMain = roots.filter(
    (entry) => nodeEntries.has(entry) || !nodeEntries.has(main!) || loadedBy.get(entry)!.has(main!),
  )
  for (const by of loadedBy.values())
    if (main !== undefined && by.has(main)) for (const entry of comesWithMain) by.add(entry)
  const packagesOf = new Map(roots.map((entry) => [entry, new Set<string>()]))
  for (const [id, by] of loadedBy)
    for (const name of modules.get(id)!.packages)
      for (const entry of by) packagesOf.get(entry)!.add(name)
  // An entry that runs in browsers must not load a chunk that does not. No entry may load another package
  // only because it shares a chunk: `skein --help` would load the code of every vendor.
  const isAllowed = ({ isPortable, entries: readers, modules: ids }: Chunk): boolean => {
    const packages = ids.flatMap((id) => modules.get(id)!.packages)
    return [...readers].every(
      (entry) =>
        (isPortable || nodeEntries.has(entry)) &&
        packages.every((name) => packagesOf.get(entry)!.has(name)),
    )
  }
  const plan = new Map<string, string>()
  joinChunks(sharedChunks(modules, loadedBy), modules, isAllowed).forEach((chunk, index) => {
    for (const id of chunk.modules) plan.set(id, `shared-${index + 1}`)
  })
  return plan
}

function sharedChunks(
  modules: ReadonlyMap<string, Module>,
  loadedBy: ReadonlyMap<string, ReadonlySet<string>>,
): Chunk[] {
  const groups = new Map<string, string[]>()
  for (const [id, entries] of loadedBy) {
    const key = [...entries].toSorted().join('\n')
    groups.set(key, [...(groups.get(key) ?? []), id])
  }
  return [...groups.values()]
    .map((ids) => ({
      entries: loadedBy.get(ids[0]!)!,
      isPortable: ids.every((id) => modules.get(id)!.isPortable),
      modules: ids,
      bytes: ids.reduce((sum, id) => sum + modules.get(id)!.bytes, 0),
    }))
    .filter((chunk) => chunk.entries.size > 1)
}

function joinChunks(
  start: readonly Chunk[],
  modules: ReadonlyMap<string, Module>,
  isAllowed: (chunk: Chunk) => boolean,
): Chunk[] {
  let chunks = [...start]
  for (;;) {
    let best: { saved: number; joined: Chunk[] } | undefined
    for (const [index, a] of chunks.entries()) {
      for (const b of chunks.slice(index + 1)) {
        const saved = savedBytes(a, b)
        if (saved <= (best?.saved ?? 0)) continue
        const rest = chunks.filter((chunk) => chunk !== a && chunk !== b)
        const joined = [join(a, b), ...rest]
        if (isAllowed(joined[0]!) && !hasCycle(joined, modules)) best = { saved, joined }
      }
    }
    if (!best) return chunks
    chunks = best.joined
  }
}

/** What all entries together save when two chunks become one: files not opened, less code not needed. */
function savedBytes(a: Chunk, b: Chunk): number {
  const both = [...a.entries].filter((entry) => b.entries.has(entry)).length
  return both * FILE_BYTES - (a.entries.size - both) * b.bytes - (b.entries.size - both) * a.bytes
}

function join(a: Chunk, b: Chunk): Chunk {
  return {
    entries: new Set([...a.entries, ...b.entries]),
    isPortable: a.isPortable && b.isPortable,
    modules: [...a.modules, ...b.modules],
    bytes: a.bytes + b.bytes,
  }
}

/** Chunks that import each other in a circle could meet a class before it is defined. */
function hasCycle(chunks: readonly Chunk[], modules: ReadonlyMap<string, Module>): boolean {
  const owner = new Map(chunks.flatMap((chunk) => chunk.modules.map((id) => [id, chunk] as const)))
  const left = new Set(chunks)
  const imports = new Map(
    chunks.map((chunk) => [
      chunk,
      new Set(
        chunk.modules
          .flatMap((id) => modules.get(id)!.imports)
          .map((id) => owner.get(id))
          .filter((other) => other !== undefined && other !== chunk),
      ),
    ]),
  )
  for (let size = -1; size !== left.size;) {
    size = left.size
    for (const chunk of left)
      if (![...imports.get(chunk)!].some((other) => left.has(other!))) left.delete(chunk)
  }
  return left.size > 0
}
