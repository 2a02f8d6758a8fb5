import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

/**
 * What users can import, entry by entry, as a list in surface.txt that is read in review: a name can
 * neither appear nor vanish by accident. After a change on purpose: `vitest run -u packages/ai/test`.
 */
const folder = join(import.meta.dirname, '..')
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  exports: Record<string, { '@skein/source': string } | string>
}
const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ name, file: join(folder, target['@skein/source']) }],
)

test('the public names are those in the list', async () => {
  const lists = entries.map(({ name, file }) =>
    [`@skein/ai${name.slice(1)}`, ...[...namesIn(file)].toSorted().map((one) => `  ${one}`)].join(
      '\n',
    ),
  )
  await expect(`${lists.join('\n\n')}\n`).toMatchFileSnapshot('surface.txt')
})

test.each(entries)(
  '$name: every value in the list is there at run time, and no other',
  async ({ file }) => {
    const values = [...namesIn(file)].filter((name) => !name.startsWith('type '))
    expect(Object.keys((await import(file)) as object).toSorted()).toEqual(values.toSorted())
  },
)

const readme = readFileSync(join(folder, 'README.md'), 'utf8').split('\n')
const listed = entries.filter(({ file }) => !/[/\\]vendors[/\\](?!list)/.test(file))

test.each(listed)(
  '$name: the table in the README names every value, and no other',
  ({ name, file }) => {
    const row = readme.find((line) => line.startsWith(`| \`@skein/ai${name.slice(1)}\` `)) ?? ''
    const named = [...row.slice(row.indexOf('`', 3)).matchAll(/`(\w+)`/g)].map(([, one]) => one!)
    const values = [...namesIn(file)].filter((one) => !/^type |^default$/.test(one))
    expect(named.toSorted()).toEqual(values.toSorted())
  },
)

const core = entries.filter(({ name }) => !/middleware|gateway|testing/.test(name))

test.each(core)('$name: every name says what it is for', ({ file }) => {
  expect([...undocumentedIn(file)]).toEqual([])
})

/** One `export … from`, as entries write it. */
const reexport = /^export (type )?(\*|\{[^}]*\}) from '(\.[^']+)'/gm
/** One exported declaration, with the end of what stands before it. */
const declaration =
  /(\*\/\n)?^export (?:default |declare )?(?:async |abstract )?(function\*?|class|interface|type|const) (\w+)/gm

function* namesIn(file: string): Generator<string> {
  const text = readFileSync(file, 'utf8')
  const isValue = new Set<string>()
  for (const [, , kind, name] of text.matchAll(declaration))
    if (kind !== 'type' && kind !== 'interface') isValue.add(name!)
  for (const [, , kind, name] of text.matchAll(declaration))
    if (kind !== 'type' && kind !== 'interface') yield name!
    else if (!isValue.has(name!)) yield `type ${name}`
  if (/^export default /m.test(text)) yield 'default'
  for (const [, isType, list, from] of text.matchAll(reexport))
    yield* reexported(namesIn(join(dirname(file), from!)), list!, isType !== undefined)
}

function* reexported(names: Iterable<string>, list: string, isType: boolean): Generator<string> {
  const found = new Set(names)
  found.delete('default')
  if (list === '*') {
    for (const name of found) if (!isType || name.startsWith('type ')) yield name
    return
  }
  for (const item of list.slice(1, -1).split(',')) {
    const [, type, name, , alias] = /^\s*(type )?(\w+)( as (\w+))?\s*$/.exec(item) ?? []
    if (name === undefined) continue
    yield type || isType || found.has(`type ${name}`) ? `type ${alias ?? name}` : (alias ?? name)
  }
}

/** Names without a doc comment. The type of a constant of the same name shares its comment. */
function* undocumentedIn(file: string): Generator<string> {
  const text = readFileSync(file, 'utf8')
  const known = new Set<string>()
  for (const [, comment, , name] of text.matchAll(declaration)) {
    if (comment !== undefined) known.add(name!)
    else if (!known.has(name!)) yield name!
  }
  for (const [, , list, from] of text.matchAll(reexport)) {
    const missing = undocumentedIn(join(dirname(file), from!))
    for (const name of missing)
      if (list === '*' || new RegExp(`\\b${name}\\b`).test(list!)) yield name
  }
}
