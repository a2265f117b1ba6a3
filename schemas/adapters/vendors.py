"""The formats of those who sell models and retrieval, specific ones first."""

from __future__ import annotations

from schemas.adapters.adapter import Adapter
from schemas.adapters.anthropic import AnthropicAdapter
from schemas.adapters.aws_retrieval import BEDROCK_ADAPTER, KENDRA_ADAPTER
from schemas.adapters.azure_on_your_data import AzureOnYourDataAdapter
from schemas.adapters.bedrock import BedrockAdapter
from schemas.adapters.bedrock_converse import BedrockConverseAdapter
from schemas.adapters.cohere import CohereAdapter
from schemas.adapters.gemini import GeminiAdapter
from schemas.adapters.openai_chat import OpenAiChatAdapter
from schemas.adapters.openai_responses import OpenAiResponsesAdapter

VENDORS: tuple[Adapter, ...] = (
    OpenAiResponsesAdapter(),
    AzureOnYourDataAdapter(),
    OpenAiChatAdapter(),
    AnthropicAdapter(),
    CohereAdapter(),
    GeminiAdapter(),
    BedrockAdapter(),
    BedrockConverseAdapter(),
    KENDRA_ADAPTER,
    BEDROCK_ADAPTER,
)
