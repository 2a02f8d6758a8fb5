import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { projectFolder } from './project-folder.ts'

function folders(...paths: readonly string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'skein-project-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const path of paths) mkdirSync(join(root, path), { recursive: true })
  return root
}

test('the nearest folder with a configuration or a store is the project', () => {
  const root = folders('.skein', 'a/b/c', 'a/own/agents')
  expect(projectFolder(join(root, 'a', 'b', 'c'))).toBe(root)
  writeFileSync(join(root, 'a', 'skein.config.ts'), '')
  expect(projectFolder(join(root, 'a', 'b', 'c'))).toBe(join(root, 'a'))
  expect(projectFolder(root)).toBe(root)
  expect(projectFolder(join(root, 'a', 'own'))).toBe(join(root, 'a', 'own')) // it has agents of its own
})

test('what belongs to another user is no project, because its configuration is run', () => {
  const root = folders('.skein', 'a')
  const other = process.getuid!() + 1
  expect(projectFolder(join(root, 'a'), other)).toBe(join(root, 'a'))
})
