import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../workspace.ts'

// The files of a worker share its modules, so what a module registers at its top level holds for the first file that
// imports it and for no other. A module that cleans up calls `onTestFinished` where it makes something.
test('no module that tests share registers a hook at its top level', () => {
  const modules = globSync('{packages/*/{src,test},conformance,examples,scripts,bench}/**/*.ts', {
    cwd: root,
    exclude: (path) => /node_modules|dist/.test(path),
  }).filter((path) => !/\.test(-d)?\.ts$/.test(path))
  expect(modules.length).toBeGreaterThan(500)
  const hook = /^(?:before|after)(?:All|Each)\(/m
  expect(modules.filter((path) => hook.test(readFileSync(join(root, path), 'utf8')))).toEqual([])
})
