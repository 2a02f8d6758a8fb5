import { defineTool } from '@skein/runtime'
import { z } from 'zod'
import { findOrder } from '../shop.ts'

/** Its result is the evidence that the task class of `refunds` asks for. */
export default defineTool({
  name: 'look_up_order',
  description: 'Finds an order by its number, e.g. O-7.',
  args: z.object({ order: z.string() }),
  risk: 'read_only',
  execute: (_, { order }) => ({ ...findOrder(order) }),
})
