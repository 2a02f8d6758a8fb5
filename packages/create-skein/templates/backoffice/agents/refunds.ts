import { defineAgent } from '@skein/runtime'
import refunds from '../prompts/refunds.ts'

/**
 * Pays money back after a person has approved it. The task class is what a session must show before its answer is
 * delivered: that the order was looked up. An answer without that evidence is withheld, whatever the model says.
 */
export default defineAgent({
  name: 'refunds',
  title: 'Refunds',
  description: 'Refunds orders; a person approves each refund.',
  sideA: { label: 'Refunds', prompt: refunds },
  taskClass: {
    name: 'refund',
    needs: [{ type: 'tool_result', source: 'look_up_order' }],
    verifiers: [],
  },
})
