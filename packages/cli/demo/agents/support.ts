import { says, scripted } from '@skein/ai/testing'
import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** Answers without looking anything up, which the task class does not allow. The model is a script. */
const support: AgentDefinition = defineAgent({
  name: 'support',
  title: 'Support',
  description: 'Says where an order is.',
  instructions: 'Say where the order is.',
  model: scripted(() => says('Order O-9 arrives tomorrow.')),
  tools: ['look_up_order'],
  taskClass: {
    name: 'where_is_it',
    needs: [{ type: 'tool_result', source: 'look_up_order' }],
    verifiers: [],
  },
})

export default support
