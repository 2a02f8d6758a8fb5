import asyncio
import json

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel

desk = Agent(
    OpenAIChatModel('gpt-5-mini'),
    instructions='You are the support desk of a shop.',
    output_type=[str, DeferredToolRequests],
)


@desk.tool_plain
def look_up_order(order: str) -> dict[str, str]:
    """Finds out where an order is."""
    return {'order': order, 'status': 'on its way'}


@desk.tool_plain(requires_approval=True)
def refund(order: str) -> dict[str, str]:
    """Pays the money for an order back."""
    return {'refunded': order}


async def main() -> None:
    # Streaming.
    async with desk.run_stream('I am Ada. Where is order O-7?') as stream:
        async for text in stream.stream_text(delta=True):
            print(text, end='')
        print()
        history = stream.all_messages()

    # Memory is the list of messages.
    asked = await desk.run('Please refund it.', message_history=history)
    assert isinstance(asked.output, DeferredToolRequests)
    waiting = asked.output.approvals[0]
    print(f'waits for a person: refund {json.dumps(waiting.args_as_dict(), separators=(",", ":"))}')
    stored = asked.all_messages_json()

    # Later, in any process: the person has said yes.
    answers = DeferredToolResults(approvals={waiting.tool_call_id: True})
    messages = ModelMessagesTypeAdapter.validate_json(stored)
    done = await desk.run(message_history=messages, deferred_tool_results=answers)
    print(done.output)


asyncio.run(main())
