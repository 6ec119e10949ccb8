"""The text that an experiment reads where no other is given: plain English prose, about 1,100 tokens."""

SAMPLE_TEXT = """\
The ferry to the island leaves twice a day, at seven in the morning and at four in the afternoon, and nobody on \
either side of the water owns a clock that agrees with it. When the wind comes from the north the captain waits; \
when it comes from the west he leaves early, because the tide will not. People who have lived here for long go \
down to the harbour when the gulls do. Visitors stand at the ticket office with their watches and are told, \
kindly, that the boat is either late or gone.

My grandmother kept the light on the far side of the island for thirty-one years. It had been a lamp of oil, \
then one of gas, and when she began it was already an electric bulb no larger than an apple, turned by a motor \
that a child could have carried. What mattered was the lens. It stood higher than she did, ring upon ring of \
glass, each cut so that a ray from the middle left it level with the sea. She polished it with a soft cloth and \
vinegar, never with soap, and she counted the rings as she went, so that she would not forget one. There were \
twenty-four. On clear nights the light could be seen from nineteen miles away, and the book in which ships wrote \
down where they had first seen it was the only reading she trusted.

The book is what I inherited. Its pages are ruled in blue, with a column for the date, one for the weather, one \
for the name of the ship and one for remarks. Most remarks are short. "Fog, horn from three to nine." "Glass \
cracked in the fourth ring, sent for." "Nothing." She wrote "nothing" more often than any other word, and she \
wrote it every time with the same care, as though nothing were a kind of weather that had to be reported too. In \
the winter of the great storm there are eleven lines for a single night, and the hand gets smaller from line to \
line because she saw that the page would end.

I was asked once to explain to a class of children how a lighthouse works, and found that I could not begin with \
the light. If you want to say where you are to somebody who cannot see you, it is not enough to be bright. You \
must be bright in a way that nothing else is. That is why every light along the coast has its own rhythm: two \
flashes and a pause, one long and one short, a flash every seven seconds. A sailor does not look for a light; he \
counts. He looks at the dark between the flashes and says the seconds aloud, and then he opens a list and finds \
the only place in the world that is dark for that long. The children liked this very much. One of them asked who \
decides that the pause is over, and I said that it is the motor, and she said that this was not what she meant.

There are three rules for keeping a record, and my grandmother had them written on a card above the desk. First, \
write it down before you do anything about it, because afterwards you will remember what you did and not what \
you saw. Second, write the hour. Third, do not correct: draw a line through what was wrong, so that it can still \
be read, and put the right thing beside it. In thirty-one years there are nine such lines. Seven of them concern \
the names of ships. One changes the direction of the wind. The last one, on the day the light was made automatic \
and she was told that she could go home, strikes out the word "nothing" and puts no other word in its place.

Since then a computer in an office on the mainland switches the lamp on when it is dark and off when it is not. \
It keeps a record as well, a far better one than hers, with the voltage and the temperature of the bulb every \
ten minutes and the exact time at which the motor was started. I have seen it. A young engineer showed it to me \
on a screen, scrolling through a year in a few seconds, and he was proud of it, and he had reason to be. When a \
bearing begins to wear, the record shows it three weeks before anyone could hear it. I asked him what it says \
when a ship has seen the light. He thought about that for a while. Then he said that there was no sensor for it, \
and that it could be calculated.

The ferry was early on the day I went back. From the stern I could see the tower for most of an hour, first with \
the houses around it, then with the hill alone, and at the end as a white line that one could have covered with \
a match. I had a watch with me and a pencil. It was still light, so there was nothing to count, but I wrote down \
the hour at which I lost it, and the weather, and under remarks I wrote the name of the boat. It seemed right \
that somebody should. The column was narrow, and I had to make the letters small.
"""
