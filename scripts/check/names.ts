import type { SourceFile } from '../source/measure.ts'
import type { PublicName } from '../source/public-names.ts'

/** Exported names that several files may declare, by reason. */
const declaredTwice: Readonly<Record<string, readonly string[]>> = {
  'the same role in each wire': [
    'API',
    'decodeError',
    'decodeRequest',
    'decodeResponse',
    'encodeError',
    'encodeRequest',
    'errorBody',
    'fromStopReason',
    'fromUsage',
    'readError',
    'refuse',
    'toUsage',
  ],
  'a Node file and its portable twin': [
    'fileLog',
    'filePayloads',
    'fileSpent',
    'sharedTransport',
    'RepeatedFrame',
    'extended',
    'readCredentialFile',
    'inPieces',
    'sqliteSpent',
    'verifyLogFolder',
  ],
  'names of specifications': ['Middleware', 'MiddlewareContext', 'Thread', 'Turn', 'UserContent'],
}

/** Public names that mean different things in different packages, because specifications say so. */
const homonyms: readonly string[] = declaredTwice['names of specifications']!

/** Names that two files export, and public names with two meanings. */
export function findNameProblems(
  files: readonly SourceFile[],
  publicNames: readonly PublicName[],
): string[] {
  return [...doubledExports(files), ...publicHomonyms(publicNames)]
}

function doubledExports(files: readonly SourceFile[]): string[] {
  const allowed = new Set(Object.values(declaredTwice).flat())
  const places = new Map<string, string[]>()
  for (const { path, exports } of files)
    for (const name of new Set(exports.map((one) => one.name)))
      places.set(name, [...(places.get(name) ?? []), path])
  return [...places]
    .filter(([name, paths]) => paths.length > 1 && !allowed.has(name))
    .map(
      ([name, paths]) =>
        `"${name}" is exported by ${paths.join(' and ')}; one of them needs another name.`,
    )
}

function publicHomonyms(names: readonly PublicName[]): string[] {
  const places = new Map<string, Set<string>>()
  for (const { name, declaredIn } of names)
    if (declaredIn.startsWith('packages/') && name !== 'default')
      places.set(name, (places.get(name) ?? new Set()).add(declaredIn))
  return [...places]
    .filter(([name, files]) => files.size > 1 && !homonyms.includes(name))
    .map(
      ([name, files]) =>
        `The public name "${name}" means different things: ${[...files].join(', ')}.`,
    )
}
