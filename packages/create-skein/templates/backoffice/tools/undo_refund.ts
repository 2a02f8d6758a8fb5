import { defineTool } from '@skein/runtime'
import { z } from 'zod'
import { findOrder, setStatus } from '../shop.ts'

/** Undoes `refund`. No prompt lists it: the governor calls it when an attempt has to be taken back. */
export default defineTool({
  name: 'undo_refund',
  description: 'Takes a refund back.',
  args: z.object({ order: z.string() }),
  risk: 'write_low_risk',
  idempotent: true,
  execute: (_, { order }) => {
    const { number, status } = findOrder(order)
    if (status === 'refunded') setStatus(number, 'delivered')
    return { order: number, status: findOrder(number).status }
  },
})
