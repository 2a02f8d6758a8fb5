import { expect, test } from 'vitest'
import { withFixture } from '../source/fixture.ts'
import { findUnconnectedFiles } from './unconnected.ts'

/** A function of that many lines that mentions other names. */
function functionOf(name: string, lines: number, mentions = ''): string {
  return `export function ${name}(): void {\n${`  void 0\n`.repeat(lines - 3)}  ${mentions}\n}\n`
}

function groupsOf(text: string): (readonly [names: string, lines: number])[] {
  let groups: (readonly [string, number])[] = []
  withFixture({ 'x/src/file.ts': text }, ({ root, files }) => {
    groups = findUnconnectedFiles(root, files).flatMap((file) =>
      file.groups.map(({ names, lines }) => [names.join(' '), lines] as const),
    )
  })
  return groups
}

test('two groups of 30 lines that do not mention each other are found, largest first', () => {
  expect(groupsOf(functionOf('a', 30) + functionOf('b', 31))).toEqual([
    ['b', 31],
    ['a', 30],
  ])
})

test('a group below 30 lines does not count; its comment does', () => {
  expect(groupsOf(functionOf('a', 30) + functionOf('b', 29))).toEqual([])
  expect(groupsOf(`${functionOf('a', 30)}/** Does b. */\n${functionOf('b', 29)}`)).toHaveLength(2)
})

test('declarations that mention each other, at any distance and in either order, are one group', () => {
  expect(groupsOf(functionOf('a', 40, 'b()') + functionOf('b', 40))).toEqual([])
  expect(groupsOf(functionOf('a', 40) + functionOf('b', 40, 'a()'))).toEqual([])
  const bridge = `const both = [a, b]\n`
  expect(groupsOf(functionOf('a', 40) + functionOf('b', 40) + bridge)).toEqual([])
  const type = `interface Shape {\n${'  readonly x: number\n'.repeat(40)}}\n`
  expect(groupsOf(type + functionOf('a', 40, 'const x: Shape | 0 = 0'))).toEqual([])
})

test('small declarations add up to a group', () => {
  const small = functionOf('a1', 10) + functionOf('a2', 10, 'a1()') + functionOf('a3', 10, 'a2()')
  expect(groupsOf(small + functionOf('b', 30))).toEqual([
    ['a1 a2 a3', 30],
    ['b', 30],
  ])
})

test('imports and lists of exports connect nothing', () => {
  const text = `import { x } from './x.ts'\n${functionOf('a', 30, 'x()')}${functionOf('b', 30, 'x()')}export { a as c, b as d }\n`
  expect(groupsOf(text)).toHaveLength(2)
})
