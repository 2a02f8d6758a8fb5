import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'vite'
import { findPackages, root, type Exports } from '../workspace.ts'

/** A name that users can import, and the file that declares it. */
export interface PublicName {
  readonly package: string
  readonly entry: string
  readonly name: string
  /** Relative to the repository. */
  readonly declaredIn: string
}

/** Every name of every entry of every package, types included. */
export function publicNames(): PublicName[] {
  return findPackages().flatMap(({ name, folder, manifest }) =>
    Object.entries((manifest.exports ?? {}) as Record<string, Exports>).flatMap(
      ([entry, target]) => {
        const source = sourceOf(target)
        if (source === undefined) return []
        return [...namesIn(join(folder, source))].map(([exported, file]) => ({
          package: name,
          entry: join(name, entry),
          name: exported,
          declaredIn: relative(root, file).replaceAll('\\', '/'),
        }))
      },
    ),
  )
}

function sourceOf(target: Exports): string | undefined {
  if (typeof target !== 'object' || target === null) return undefined
  const own = target['@skein/source']
  return typeof own === 'string' ? own : sourceOf(target['node'] ?? null)
}

/** Exported names with the file in which each is declared, through every re-export. */
function namesIn(file: string): Map<string, string> {
  const names = new Map<string, string>()
  const { program } = parseSync(file, readFileSync(file, 'utf8'))
  for (const node of program.body) {
    if (node.type === 'ExportAllDeclaration') {
      const source = node.source.value
      if (!source.startsWith('.')) continue
      if (node.exported) names.set(nameOf(node.exported), join(dirname(file), source))
      else for (const [name, from] of namesIn(join(dirname(file), source))) names.set(name, from)
    }
    if (node.type !== 'ExportNamedDeclaration') continue
    const source = node.source?.value
    const from = source?.startsWith('.') ? namesIn(join(dirname(file), source)) : undefined
    for (const { local, exported } of node.specifiers)
      names.set(nameOf(exported), from?.get(nameOf(local)) ?? source ?? file)
    const { declaration } = node
    if (declaration === null) continue
    if (declaration.type === 'VariableDeclaration') {
      for (const { id } of declaration.declarations)
        if (id.type === 'Identifier') names.set(id.name, file)
    } else if ('id' in declaration && declaration.id?.type === 'Identifier')
      names.set(declaration.id.name, file)
  }
  return names
}

function nameOf(node: {
  readonly type: string
  readonly name?: string
  readonly value?: unknown
}): string {
  return node.name ?? String(node.value)
}
