import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as main from './index.ts'
import * as checkpoint from './checkpoint/index.ts'
import * as mcp from './mcp/index.ts'
import * as middleware from './middleware/index.ts'
import * as execution from './strategies/index.ts'
import * as testing from './testing/index.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const entries = { '': main, checkpoint, execution, mcp, middleware, testing }

test.each(Object.entries(entries))(
  'the table of exports names every function and class of the entry "%s", and nothing else',
  (entry, exported) => {
    const name = entry === '' ? '@skein/agents' : `@skein/agents/${entry}`
    const row = readme.split('\n').find((line) => line.startsWith(`| \`${name}\` `))
    const names = [...(row ?? '').matchAll(/`([\w]+)`/g)].map(([, one]) => one)
    expect(names.toSorted()).toEqual(Object.keys(exported).toSorted())
  },
)
