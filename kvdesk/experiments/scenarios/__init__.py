"""What happens to a cache in the course of a day: events that can be generated, read from a journal, and played.

history         the events                    chat_day   a generated day of chats, as events
from_recording  events of a recorded run      player     events, done with a context of llama.cpp
"""
