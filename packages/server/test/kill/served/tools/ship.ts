import { readFileSync } from 'node:fs'
import type { RunnableTool } from '@skein/runtime'
import { hasDeed, type Outside, outside } from '../outside.ts'

/** A write whose probe looks into the ledger. */
const ship: RunnableTool<Outside> = outside('ship', {
  probe: ({ ref }) => hasDeed(readFileSync(process.env['LEDGER']!, 'utf8'), 'ship', ref),
})

export default ship
