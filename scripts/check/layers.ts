import type { SourceFile } from '../source/measure.ts'

/**
 * Who may import whom, lowest layer first: code may import layers below its own, never its own or one above.
 * `packages` orders the packages, types included. The others order the folders of one package (`.` is `src`
 * itself), by imports of values; a folder without a name of its own belongs to the nearest folder above it that
 * has one. A package that is not listed has one layer.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  packages: [
    'base',
    'ai threads governance',
    'agents',
    'runtime',
    'server postgres restate evals',
    'studio',
    'cli',
    'create-skein',
  ],
  agents: [
    'contract',
    'state middleware',
    'step checkpoint',
    'strategies mcp',
    'run',
    '.',
    'testing',
  ],
  ai: [
    'contract catalog/accepted wire-servers testing/transcript',
    'media tools catalog',
    'transport',
    'turn resumable clouds testing/record-replay',
    'wires',
    'wires/* embeddings middleware routing testing',
    '. images',
    'gateway vendors client-tools server-tools',
    'ai-sdk testing/vendor-server',
  ],
  cli: [
    'terminal',
    'config',
    '. backup connect demo follow crashtest/preload',
    'crashtest',
    'commands',
  ],
  evals: ['recorded', 'diff play-back', 'replay', 'deploy-check run-again'],
  governance: [
    'contract keys',
    'journal schema',
    'governor audit adapters',
    '. approvals',
    'govern',
  ],
  runtime: [
    'contract view',
    'store',
    'store/sqlite',
    'definitions dispatch state live secrets telemetry',
    'governance',
    'definitions/load nodes thread',
    'context',
    'commit',
    'hooks',
    'children',
    'session',
    'model',
    'calls limits',
    'recovery actions',
    'loop',
    'api',
    '.',
    'testing',
  ],
  server: [
    'operations',
    'limits auth streams webhooks inspector',
    'studio protocols',
    'protocols/chat',
    'protocols/agents-as-models protocols/json-rpc',
    'protocols/*',
    'http',
    'client',
  ],
  studio: [
    'icons state',
    'parts',
    'screens/api screens/detail screens/inbox screens/threads screens/timeline',
    'screens/agents screens/thread',
    'shell',
    '.',
  ],
  threads: [
    '.',
    'json convert/bridge',
    'document log',
    'events convert/pydantic-ai',
    'convert convert/ai-sdk',
    'convert/ag-ui',
  ],
}

/** Imports against the layers, folders that are in none, and layers that name a folder that is gone. */
export function findLayerProblems(
  files: readonly SourceFile[],
  rules: Readonly<Record<string, readonly string[]>> = layers,
): string[] {
  return [
    ...packageProblems(files, rules['packages'] ?? []),
    ...folderProblems(files, rules),
    ...unusedNames(files, rules),
  ]
}

function packageProblems(files: readonly SourceFile[], order: readonly string[]): string[] {
  return files.flatMap(({ path, packageImports }) => {
    const from = packageOf(path)
    const ownLayer = layerOf(order, from)
    if (ownLayer === undefined)
      return [`packages/${from} is in no layer. ${whereToAdd('packages')}`]
    return packageImports
      .filter((to) => to !== from && !((layerOf(order, to) ?? Infinity) < ownLayer))
      .map((to) => `${path} imports the package ${to}, which is not in a layer below ${from}.`)
  })
}

function folderProblems(
  files: readonly SourceFile[],
  rules: Readonly<Record<string, readonly string[]>>,
): string[] {
  const problems = files.flatMap(({ path, imports }) => {
    const owner = packageOf(path)
    const order = rules[owner]
    // The list of what an entry exports holds no code and may name every folder.
    if (!order || path.endsWith('/index.ts')) return []
    const folder = folderOf(path)
    const ownLayer = layerOf(order, folder)
    if (ownLayer === undefined)
      return [`packages/${owner}/src/${folder} is in no layer. ${whereToAdd(owner)}`]
    return imports
      .filter(({ byType, path: to }) => !byType && /\.tsx?$/.test(to) && folderOf(to) !== folder)
      .filter(({ path: to }) => !((layerOf(order, folderOf(to)) ?? Infinity) < ownLayer))
      .map(
        ({ path: to }) =>
          `${path} imports ${to}, but ${folderOf(to)} is not in a layer below ${folder}.`,
      )
  })
  return [...new Set(problems)]
}

function unusedNames(
  files: readonly SourceFile[],
  rules: Readonly<Record<string, readonly string[]>>,
): string[] {
  return Object.entries(rules).flatMap(([owner, order]) => {
    const names = new Set(
      owner === 'packages'
        ? files.map(({ path }) => packageOf(path))
        : files.filter(({ path }) => packageOf(path) === owner).map(({ path }) => folderOf(path)),
    )
    return order
      .flatMap((layer) => layer.split(' '))
      .filter((name) => !name.endsWith('/*') && !names.has(name))
      .map((name) => `scripts/check/layers.ts names ${name} (${owner}), which does not exist.`)
  })
}

/** The number of the layer that names a folder, its parent with `/*`, or the nearest folder above it. */
function layerOf(order: readonly string[], folder: string): number | undefined {
  const named = (name: string): number =>
    order.findIndex((layer) => layer.split(' ').includes(name))
  for (let name = folder; name !== '.'; name = parentOf(name)) {
    const layer = [named(name), named(`${parentOf(name)}/*`)].find((found) => found >= 0)
    if (layer !== undefined) return layer
  }
  return folder === '.' && named('.') >= 0 ? named('.') : undefined
}

function parentOf(folder: string): string {
  return folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : '.'
}

function packageOf(path: string): string {
  return path.split('/')[1] ?? ''
}

/** The folder of a file below `src`; `.` for `src` itself. */
function folderOf(path: string): string {
  return path.split('/').slice(3, -1).join('/') || '.'
}

function whereToAdd(owner: string): string {
  return `Add it to \`${owner}\` in scripts/check/layers.ts, above what it imports and below what imports it.`
}
