import { readFile, writeFile } from 'node:fs/promises'
import { format } from 'prettier'
import { afterEach, expect, test } from 'vitest'
import { ROUTES } from '../../src/http/routes.ts'
import { ADDRESSES } from '../../src/operations/addresses.ts'
import { startKit, type Kit } from './http-kit.ts'
import { buildWorld, fillPath } from './world.ts'

const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

async function start(): Promise<Kit> {
  const kit = await startKit()
  kits.push(kit)
  return kit
}

test('every address has an entry in the table, and every entry an address', () => {
  expect(ROUTES.map(({ id }) => id).sort()).toEqual(Object.keys(ADDRESSES).sort())
  for (const { id, method, path } of ROUTES)
    expect(`${method} ${path}`).toBe(ADDRESSES[id as keyof typeof ADDRESSES])
})

test('docs/http.md lists the operations of the table', async () => {
  const file = new URL('../../../../docs/http.md', import.meta.url)
  const text = await readFile(file, 'utf8')
  const tags = [...new Set(ROUTES.map(({ tag }) => tag))]
  const rows = tags.flatMap((tag) =>
    ROUTES.filter((route) => route.tag === tag).map(({ method, path, scope, summary }, index) => {
      const about = index === 0 ? tag : ''
      return `| ${about} | \`${method} ${path}\` | \`${scope}\` | ${summary} |`
    }),
  )
  const table = ['| about | operation | scope | |', '| --- | --- | --- | --- |', ...rows].join('\n')
  const section = /(<!-- operations -->\n)[^]*(\n<!-- \/operations -->)/
  expect(text).toMatch(section)
  const made = text.replace(
    section,
    (_, open: string, close: string) => `${open}\n${table}\n${close}`,
  )
  const wanted = await format(made, {
    parser: 'markdown',
    semi: false,
    singleQuote: true,
    printWidth: 100,
  })
  if (process.env['SKEIN_WRITE_DOCS']) await writeFile(file, wanted)
  else
    expect(text, 'Write the list with SKEIN_WRITE_DOCS=1 npx vitest run operations.test').toBe(
      wanted,
    )
})

test('a query parameter that an operation does not have is refused, with its name and the known ones', async () => {
  const kit = await start()
  const one = await kit.ask('acme', 'GET', '/threads?lifecicle=idle&limit=5')
  expect([one.status, await one.json()]).toEqual([
    400,
    {
      error: {
        code: 'INPUT_INVALID',
        message: 'This operation has no query parameter "lifecicle".',
        hint: expect.stringMatching(
          /^It has agent, owner, lifecycle, .*, limit, offset, cursor\.$/,
        ),
        problems: [{ field: 'query.lifecicle', message: 'is not a known parameter' }],
      },
    },
  ])
  const several = await kit.ask('acme', 'GET', '/agents?a=1&b=2&a=3')
  expect([several.status, await several.json()]).toMatchObject([
    400,
    {
      error: {
        message: 'This operation has no query parameter "a", "b".',
        hint: 'It has no query parameters at all.',
      },
    },
  ])
  const both = await kit.json('acme', 'GET', '/threads?limit=5')
  expect(both).toEqual({ threads: [] })
})

test('every operation says so, except those whose callers add parameters of their own', async () => {
  const kit = await start()
  const open: string[] = []
  const { params } = await buildWorld(kit)
  for (const route of ROUTES) {
    const path = fillPath(route.path, { ...params, ...route.probe?.params })
    const body = route.probe?.body ?? (route.body && 'bytes' in route.body ? 'x' : undefined)
    const response = await kit.ask('acme', route.method, `${path}?nonsense=1`, body)
    const text = await (response.status === 400 ? response.text() : response.body?.cancel())
    if (!text?.includes('query.nonsense')) open.push(route.tag)
  }
  expect([...new Set(open)]).toEqual(['server', 'endpoints', 'compatible'])
})

test('names of parameters that every object has are unknown too', async () => {
  const kit = await start()
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
    expect((await kit.ask('acme', 'GET', `/threads?${name}=1`)).status, name).toBe(400)
})
